"""What the stage asks of a server of some kind: all that a recipe's tests must tell of theirs.

Whoever adds a kind writes these two classes for it, and names the kind in :mod:`.kinds`; then each
test of the contract is run with it.
"""

from __future__ import annotations

import os
import select
import signal
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from zkelect.recipes.member import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    import zkelect
    from zkelect.recipes.member import Answer
    from zkelect.stores import Mark

__all__ = ["Client", "Fence", "Node"]


class Fence(Protocol):
    """What the guarded stores have in common."""

    def claim(self, claimant: zkelect.Token) -> None: ...

    def status(self) -> Mark | None: ...


class Client(ABC):
    """One connection to one server; any call may raise the errors of its driver."""

    @abstractmethod
    def probe(self) -> tuple[float, bool]:
        """Return an instant of the server's wall clock, and whether it took writes then."""

    @abstractmethod
    def write(self, number: int) -> float:
        """Have it confirm that number; return when it was written, by its wall clock."""

    @abstractmethod
    def close(self) -> None:
        """Leave; raises nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Node(ABC):
    """One server of a cluster.

    :cvar resource: the recipe's class; called with member, place, domain and fence.
    :cvar account: whom it runs as when we are root; empty: as we do.
    :cvar errors: what its driver raises when a server cannot be reached, or refuses.
    :cvar durable: what it has confirmed is there again when it was killed and started.
    :cvar heals: an old primary that wrote apart can follow again; else it is refused, and rebuilt.
    :cvar safest: options of the stage with which a fail-over loses least.
    :param folder: of its own, inside the cluster's. :param settings: lines of its configuration.
    """

    resource: ClassVar[type[Any]]
    account: ClassVar[str] = ""
    errors: ClassVar[tuple[type[Exception], ...]]
    durable: ClassVar[bool] = True
    heals: ClassVar[bool] = True
    safest: ClassVar[dict[str, Any]] = {}

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        self.name = name
        self.folder = folder
        self.port = port
        self.settings = settings

    def __repr__(self) -> str:
        return f"<{self.name} at {self.port}>"

    # --- how the recipe sees it ---------------------------------------------------------------

    @property
    @abstractmethod
    def address(self) -> str:
        """Where its clients and the other members reach it."""

    @abstractmethod
    def placed(self, **options: Any) -> Any:
        """Return the recipe's Place of it."""

    def member(self, **options: Any) -> Member:
        return Member(name=self.name, address=self.address, **options)

    def fence(self) -> Callable[[Member, float], Answer] | None:
        """Return how its agent has another member fenced from outside; it must be picklable."""
        return None

    # --- making it --------------------------------------------------------------------------------

    @classmethod  # noqa: B027  most kinds need nothing
    def prepare(cls, folder: Path) -> None:
        """Put into the cluster's folder what all its servers begin with."""

    @abstractmethod
    def make(self, primary: Self | None) -> None:
        """Write its configuration and its data: new ones, or a copy of the primary's."""

    @abstractmethod
    def start(self) -> None:
        """Start it as it is set up, with nothing of the recipe's, and return when it answers."""

    @abstractmethod
    def join(self, primary: Self | None) -> None:
        """Have it follow; or be the primary, which takes numbers."""

    def rebuild(self, primary: Self) -> None:
        """Make it anew from the primary, as somebody does whose server needs that."""
        raise NotImplementedError(f"{type(self).__name__} heals by itself")

    # --- looking --------------------------------------------------------------------------------

    @property
    def pid_file(self) -> Path:
        """Where the server writes the number of its first process."""
        return self.folder / "pid"

    @property
    def pid(self) -> int | None:
        """Its first process, if that runs."""
        try:
            pid = int(self.pid_file.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return pid if Path(f"/proc/{pid}/exe").exists() else None

    @property
    def processes(self) -> list[int]:
        """All processes of it."""
        return [] if self.pid is None else [self.pid]

    @abstractmethod
    def client(self) -> Client:
        """Connect to it; gives up within seconds."""

    @abstractmethod
    def count_followers(self) -> int:
        """Return how many servers receive what is written here."""

    @abstractmethod
    def written(self) -> set[int]:
        """Return the numbers that are here."""

    @abstractmethod
    def open_fence(self, domain: str) -> AbstractContextManager[Fence]:
        """Open the fence on it, as an application does."""

    # --- breaking it ----------------------------------------------------------------------------

    @abstractmethod
    def cut_off(self) -> None:
        """Let it receive nothing more from its primary; return when that is so."""

    def kill(self) -> None:
        """End all its processes at once, as a power cut does; return when they have ended."""
        self.signal(signal.SIGSTOP)  # or the first one starts others while it dies
        processes = self.processes
        self.signal(signal.SIGKILL)
        for pid in processes:
            _wait_ended(pid)

    def signal(self, which: signal.Signals) -> None:
        """Send a signal to each process of it."""
        for pid in self.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, which)


def _wait_ended(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        select.select([handle], [], [], 30)
        os.close(handle)
