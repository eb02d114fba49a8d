"""The network and the containers of one ensemble, removed together."""

from __future__ import annotations

import os
import secrets
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from zkelect.testing.docker_engine import Engine, translated

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker.models.containers import Container

__all__ = ["Project"]

Value = TypeVar("Value")


class Project:
    """Makes containers on a private network, and removes all of them.

    What is made, and the removal, take turns on one thread: a call that Ctrl-C interrupts
    for its caller is finished before the removal looks for what there is to remove. What was
    not removed by then goes when this program ends in the usual way.

    :ivar name: of the network; each container's name begins with it, and the label
        ``zkelect.ensemble`` of all of them has it as value.
    """

    def __init__(self, engine: Engine) -> None:
        """Make nothing yet."""
        self.engine = engine
        self.name = f"zkelect-{secrets.token_hex(4)}"
        self._owner = os.getpid()
        self._turns = ThreadPoolExecutor(1, "docker")
        self._at_exit = weakref.finalize(self, _remove, engine, self.name, self._owner)

    def create_network(self) -> None:
        """Create the network, with the project's name."""
        self._in_turn(partial(self.engine.create_network, self.name))

    def create(self, name: str, image: str, **options: Any) -> Container:
        """Create a container; it does not run yet."""
        make = partial(self.engine.create_container, self.name, name, image, **options)
        return self._in_turn(make)

    def run(self, name: str, image: str, **options: Any) -> Container:
        """Create a container and start it; return it with its addresses known."""
        return self._in_turn(partial(self._run, name, image, options))

    def remove(self) -> None:
        """Remove all of it; no-op the second time, and in a process forked from ours."""
        if os.getpid() == self._owner and self._at_exit.alive:
            self._in_turn(partial(self.engine.remove, self.name))
            self._at_exit.detach()
            self._turns.shutdown()
            self.engine.close()

    def _run(self, name: str, image: str, options: dict[str, Any]) -> Container:
        container = self.engine.create_container(self.name, name, image, **options)
        with translated(f"start container {self.name}-{name}"):
            container.start()
            container.reload()
        return container

    def _in_turn(self, call: Callable[[], Value]) -> Value:
        return self._turns.submit(call).result()


def _remove(engine: Engine, name: str, owner: int) -> None:
    """Remove it at the end of the process that made it, not of one forked from that."""
    if os.getpid() == owner:
        engine.remove(name)
