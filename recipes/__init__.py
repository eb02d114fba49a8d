"""Whole jobs built on an election, one module each; they use public names of zkelect only."""
