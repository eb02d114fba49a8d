"""The commands that look at elections, and change nothing."""
