"""The keeper: starts the command, and kills all that came of it when the time is up.

A small process of its own, of the standard library alone: it has to be there, awake and
undisturbed, when the elector is stopped, killed, or busy. It hears of each new deadline over
a socket, and is the one process that every orphan of the command's comes to (prctl(2),
PR_SET_CHILD_SUBREAPER), so that none can hide by forking twice.
"""
