"""``zkelect fence``: the marks that guarded stores keep, as an operator looks at them."""
