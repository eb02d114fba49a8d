"""``zkelect demo``: an election on a real ZooKeeper, shown and counted."""
