"""A run that tries to break every promise on a real ensemble, and the checker that judges it."""
