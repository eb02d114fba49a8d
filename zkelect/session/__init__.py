"""The session with ZooKeeper: the only place that imports kazoo, and only its public API."""
