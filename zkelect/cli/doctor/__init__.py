"""The command ``zkelect doctor``: what it collects, what it finds, how it says so."""
