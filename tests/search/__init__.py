"""A search for counter-examples to the lease rule.

Bottom up: ``timeline`` and ``network`` are time and TCP; ``log``, ``tracker``, ``server``,
``serving``, ``leading``, ``learning`` and ``ensemble`` are ZooKeeper as far as sessions go;
``connection``, ``campaign`` and ``client`` put the library's own lease, prober and watchdog on
top; ``evidence`` and ``controls`` hold the rules that are judged; ``scenario``, ``faults``
and ``adversary`` make what happens; ``history`` runs one seed, ``report`` many.
"""
