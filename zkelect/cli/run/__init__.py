"""``zkelect run``: a command that runs only where and while this process leads.

Two processes see to that. The elector (:mod:`zkelect.cli.run.elector`) stands for election and
renews the lease. The keeper (:mod:`zkelect.cli.run.keeper`) starts the command and kills all
that came of it when the lease is over, also while the elector is stopped or dead. Each of them
does the other's killing when the other cannot.
"""
