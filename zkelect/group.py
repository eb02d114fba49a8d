"""Many elections of one process: shards, partitions, tenants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import Final, Self

import attrs

from zkelect.core.holddown import HoldDown
from zkelect.core.lease import patience_of
from zkelect.core.paths import normalize
from zkelect.core.spread import weigh
from zkelect.core.state import Phase
from zkelect.core.znodes import DIALECTS
from zkelect.errors import InvalidArgument
from zkelect.session.callbacks import Callbacks
from zkelect.session.functions import check_blocking, check_callbacks
from zkelect.session.leadership import Leadership
from zkelect.session.limits import check_timeout
from zkelect.session.proposal import DialectName, Proposal, default_name
from zkelect.session.session import Session
from zkelect.session.share import Share
from zkelect.session.standing import Standing
from zkelect.session.status import Status
from zkelect.session.supervision import OnSuspended

__all__ = ["ElectionGroup"]

_NAME_FORM: Final = "one level of a znode path, such as 'shard-00001'"
_FUNCTION_FORM: Final = "a function of an election's name"


class ElectionGroup:
    """Stands in many elections below one path, and leads no more of them than it may.

    ::

        group = zkelect.ElectionGroup(session, "/shards", name="worker-7", limit=120)
        with group.listen(Hooks()):
            group.add(*(f"shard-{i:05}" for i in range(10_000)))
            ...
            group.close()

    Each election is an ordinary one, ``root/name``, that stands again after every end, as by
    :meth:`Election.start`; none has a thread of its own, and all join on one connection
    without waiting for each other. A context manager: leaving the block leaves them all.

    Every worker that stands for an election has a weight there, computed from the two names;
    the one with the highest should lead. A leader whose heir has a higher weight resigns and
    stands again behind, a few elections at a time: so the elections spread evenly, tokens
    only rise, and when a worker comes or goes few others move. That takes some slow re-reads
    of each queue, three to five session timeouts each.

    :param session: of this process, from :func:`zkelect.connect`.
    :param root: absolute path below which the elections are; made when missing.
    :param name: of this worker, at most 8 KiB; must differ between workers and should stay the
        same when one is started again. Host name and pid when None.
    :param limit: lead at most so many at any instant, 1 or more; None: all of them. One counts
        from its grant until ``deposed`` has returned. While the limit is reached this
        process stands nowhere else.
    :param spread: False: whoever leads stays, and nobody resigns for this worker.
    :param eligible: asked with an election's name before standing for it, and at the grant.
    :param healthy: asked with an election's name while leading it.
    :param address, prepare, prepare_timeout, unhealthy_after, stall_timeout, on_suspended,
        dialect, strict: as for :class:`Election`, the same for all. Among candidates of other
        libraries nothing is spread.
    :raises InvalidArgument: before anything is created.
    """

    def __init__(
        self,
        session: Session,
        root: str,
        *,
        name: str | None = None,
        limit: int | None = None,
        spread: bool = True,
        address: str = "",
        eligible: Callable[[str], bool] | None = None,
        prepare: Callable[[Leadership], None] | None = None,
        prepare_timeout: float | None = None,
        healthy: Callable[[str], bool] | None = None,
        unhealthy_after: int = 3,
        stall_timeout: float | None = None,
        on_suspended: OnSuspended = "until-deadline",
        dialect: DialectName = "kazoo",
        strict: bool = False,
    ) -> None:
        _check_limit(limit)
        _check_functions(eligible=eligible, healthy=healthy)
        if not isinstance(spread, bool):
            raise InvalidArgument("spread", spread, "True or False")
        self._proposal = Proposal(
            path=root,
            name=default_name() if name is None else name,
            address=address,
            eligible=None,
            prepare=prepare,
            prepare_timeout=prepare_timeout,
            healthy=None,
            unhealthy_after=unhealthy_after,
            stall_timeout=stall_timeout,
            on_suspended=on_suspended,
            dialect=dialect,
            strict=strict,
        )
        model = self._proposal.candidacy(session)
        self.name: Final = model.name
        self.root: Final = model.path
        self._session = session
        self._spread = spread
        self._eligible = eligible
        self._healthy = healthy
        self._share = Share(session, self.name, limit)
        self._outranked = self._share.outranked if spread else None
        self._listeners: list[Callbacks] = []
        self._changing = threading.Lock()

    def __repr__(self) -> str:
        """Show root, name and how many elections there are."""
        return f"<ElectionGroup {self.root} {self.name!r} of {len(self)}>"

    def __enter__(self) -> Self:
        """Return the group itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave every election."""
        self.close()

    # --- stand and leave -----------------------------------------------------------------------

    def add(self, *names: str) -> None:
        """Stand for these elections, too, until they are removed; blocks nobody.

        The order does not matter: those in which this worker weighs most come first.

        :param names: each one level below the root; one that is in the group stays as it is.
        :raises InvalidArgument: a name cannot be one; nothing was added.
        :raises CampaignInProgress: this session stands for one of them already, by another
            group or :class:`Election`; nothing was added.
        """
        paths = tuple(dict.fromkeys(map(self._path, names)))
        self._session.ensure_usable()
        with self._changing:
            new = [path for path in paths if path not in self._share.standings]
            self._take_places(new)
            standings = [self._standing(path) for path in new]
            with self._session.lock:
                self._share.take(standings)

    def remove(self, *names: str, timeout: float | None = None) -> bool:
        """Leave these elections: resign where we lead, stop waiting elsewhere.

        :param names: those that are not in the group are passed over.
        :param timeout: seconds to wait for ``deposed`` to return and the znodes to go; a fifth
            of the session timeout when None. From a callback it does not wait.
        :returns: whether nothing of ours is left in any election that was removed.
        """
        check_timeout(timeout)
        paths = [self._path(name) for name in names]
        if self._session.foreign:
            return True  # nothing here is ours; the lock may never be free again
        with self._changing:
            for path in paths:
                self._drop(path)
        return self._wait_left(patience_of(self._session.timeout) if timeout is None else timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Leave every election, as :meth:`remove` does; the group can be filled again."""
        return self.remove(*self, timeout=timeout)

    # --- be told -------------------------------------------------------------------------------

    @contextmanager
    def listen(self, callbacks: Callbacks) -> Iterator[None]:
        """Call back for every election of the group while the block lasts.

        :param callbacks: as for :meth:`Election.listen`; :meth:`name_of` tells which election
            a leadership is of. Serial for each election; those of two may run side by side.
        """
        check_callbacks(callbacks)
        self._listeners.append(callbacks)
        try:
            yield
        finally:
            self._listeners.remove(callbacks)

    def name_of(self, leadership: Leadership) -> str:
        """Return the name of the election that a leadership is of.

        :raises InvalidArgument: it is of none below this root.
        """
        root, _, name = leadership.path.rpartition("/")
        if root != self.root:
            raise InvalidArgument("leadership", leadership, f"one of the group at {self.root}")
        return name

    # --- look ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many elections are in the group, led or not."""
        return len(self._share.standings)

    def __contains__(self, name: object) -> bool:
        """Whether an election is in the group."""
        return f"{self.root}/{name}" in self._share.standings

    def __iter__(self) -> Iterator[str]:
        """Yield the names, as they are now."""
        prefix = len(self.root) + 1
        return iter([path[prefix:] for path in tuple(self._share.standings)])

    @property
    def leaderships(self) -> dict[str, Leadership]:
        """Those that last now, by name; each may be over a moment later: check it."""
        if self._session.foreign:
            return {}
        with self._session.lock:
            return {self.name_of(each): each for each in self._share.serving()}

    def phase(self, name: str) -> Phase:
        """Return where we stand in an election, for pages; idle while the limit keeps us out.

        :raises InvalidArgument: it is not in the group.
        """
        return self._find(name).phase

    def status(self, name: str) -> Status:
        """Return where we stand in an election at this moment; asks nobody, waits for nothing.

        :raises InvalidArgument: it is not in the group.
        """
        return self._find(name).status()

    # --- within --------------------------------------------------------------------------------

    def _find(self, name: str) -> Standing:
        standing = self._share.standings.get(self._path(name))
        if standing is None:
            raise InvalidArgument("name", name, "an election of this group")
        return standing

    def _path(self, name: str) -> str:
        if not isinstance(name, str) or not name or "/" in name:
            raise InvalidArgument("name", name, _NAME_FORM)
        return normalize(f"{self.root}/{name}")

    def _take_places(self, paths: list[str]) -> None:
        """All or none."""
        places = self._session.roster.places
        with ExitStack() as taken:
            for path in paths:
                places.take(path, self.name)
                taken.callback(places.leave, path)
            taken.pop_all()

    def _standing(self, path: str) -> Standing:
        proposal = self._propose(path)
        candidacy = proposal.candidacy(self._session, self._outranked)
        candidacy.listeners = self._listeners
        return Standing(
            candidacy,
            dialect=DIALECTS[proposal.dialect],
            hold_down=HoldDown(self._session.timeout),
            eligible=proposal.eligible,
            prepare=proposal.prepare,
            steward=self._share,
        )

    def _propose(self, path: str) -> Proposal:
        name = path.rpartition("/")[2]
        return attrs.evolve(
            self._proposal,
            path=path,
            eligible=_asked_about(self._eligible, name),
            healthy=_asked_about(self._healthy, name),
            priority=weigh(self.name, name) if self._spread else 0,
        )

    def _drop(self, path: str) -> None:
        with self._session.lock:
            if path in self._share.standings:
                self._share.drop(path)
                self._session.roster.places.leave(path)

    def _wait_left(self, timeout: float) -> bool:
        """Wait; but a callback may be what the others wait for."""
        called_back = self._session.pool.current_lane() is not None
        deadline = self._session.now() + (0.0 if called_back else timeout)
        with self._session.lock:
            leaving = tuple(self._share.leaving)
        for standing in leaving:
            standing.wait_left(max(deadline - self._session.now(), 0.0))
        return not self._share.leaving


def _asked_about(question: Callable[[str], bool] | None, name: str) -> Callable[[], bool] | None:
    return None if question is None else partial(question, name)


def _check_limit(limit: int | None) -> None:
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InvalidArgument("limit", limit, "1 or more, or None for no limit")


def _check_functions(**functions: object) -> None:
    for argument, function in functions.items():
        if function is not None:
            check_blocking(argument, function, _FUNCTION_FORM)
