"""Figures of the library on a real server, each measured beside what it is compared with."""
