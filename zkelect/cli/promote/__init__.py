"""``zkelect promote``: the agents of replicated servers, and what an operator asks of them."""
