"""A proxy between clients and servers that makes faults happen: at a frame, never by time.

Also a command, ``python -m zkelect.testing.proxy``, to see what a client does.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from zkelect.errors import InvalidArgument
from zkelect.session import hosts as connection_string
from zkelect.testing import jute, proxy_memory
from zkelect.testing.conversation import REPLIES, REQUESTS, Direction, Message
from zkelect.testing.journal import Frame, Journal
from zkelect.testing.proxy_faults import (
    Delay,
    Drop,
    Fail,
    Fault,
    Rewrite,
    Swallow,
    Tear,
    Then,
)
from zkelect.testing.proxy_frames import (
    error_code,
    new_session_request,
    resumes,
    rewritten_body,
    rewritten_welcome,
)
from zkelect.testing.proxy_names import READS, WRITES, names_meant, names_of
from zkelect.testing.proxy_numbers import Shift
from zkelect.testing.proxy_rules import Count, Pattern, Rule, When, anything
from zkelect.testing.proxy_tap import FaultTap, Script
from zkelect.testing.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FaultProxy"]

_MORE_NAMES: Final = {REQUESTS: ("connect",), REPLIES: ("connect", "event")}
"""What is no request, but passes in this direction."""


class FaultProxy(Relay):
    """Stands between clients and an ensemble, and makes faults happen.

    ::

        with FaultProxy(zookeeper.hosts) as proxy, zkelect.connect(proxy.hosts) as session:
            lost = proxy.drop_reply("create2")
            ...
            assert lost.wait()

    A rule fires at the ``nth`` frame that fits and was seen after the rule was made, and
    then at as many as ``times`` says (None: at every one). When several fit, the one made
    first fires; the others are still due. What a rule acts on is told by

    * ``name``: ZooKeeper's own name of the request, as in :attr:`requests` and :attr:`log`,
      also for its reply. ``create`` and ``getChildren`` mean every variant, so ``create``
      is also ``create2``; ``read``, ``write`` and ``any`` mean many. The handshake is
      ``connect``, a watch event ``event``;
    * ``path``: a shell pattern (``fnmatch``; ``*`` crosses slashes) for one of its paths,
      as the server has them: with the chroot, and without the number that a sequential
      create is yet to get. A multi has several.

    A frame that is lost takes its connection with it, as in TCP: ``then="cut"`` ends it
    on both sides, ``then="hang"`` keeps it open and silent until :meth:`heal`. A frame is
    never sent twice and never overtaken, for TCP does neither.

    Each client of a test gets a proxy of its own. To harm one server of several, give each
    server a proxy and join their ``hosts``. Only whole frames are passed on; a connection
    that speaks TLS or sends a four-letter word passes as it is, and no rule fires at it.
    """

    def __init__(self, hosts: str, *, told: Callable[[Frame], None] | None = None) -> None:
        """Listen on a free port for each server.

        :param hosts: a connection string, such as ``zookeeper.hosts``; a chroot is passed on.
        :param told: called with each frame, on the proxy's thread: it must not wait, raise,
            nor call the proxy.
        :raises InvalidArgument: not a connection string.
        """
        parsed = connection_string.parse(hosts)
        self._chroot = parsed.chroot
        self._script = script = Script()
        self._seen = journal = Journal(told)
        super().__init__(parsed.servers, journal, lambda cut: FaultTap(cut, journal, script))

    @property
    def hosts(self) -> str:
        """The connection string for clients, with the chroot that was given."""
        return f"{super().hosts}{self._chroot}"

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules in the order in which they were made, those that have fired too."""
        with self._seen.changed:
            return tuple(self._script.rules)

    @property
    def unfired(self) -> tuple[Rule, ...]:
        """The rules that have not fired and were not cancelled.

        A test that ends with any of them has not tested what it meant to.
        """
        return tuple(rule for rule in self.rules if not (rule.fired or rule.cancelled))

    # --- losing frames ----------------------------------------------------------------------

    def drop_request(self, name: str, *, then: Then = "cut", **when: Unpack[When]) -> Rule:
        """Lose a request: the server never sees it."""
        return self._add("drop_request", REQUESTS, name, Drop(then), **when)

    def drop_reply(self, name: str, *, then: Then = "cut", **when: Unpack[When]) -> Rule:
        """Lose a reply: the server has done it, and the client does not know."""
        return self._add("drop_reply", REPLIES, name, Drop(then), **when)

    def tear_request(
        self,
        name: str,
        *,
        size: int = 6,
        then: Then = "cut",
        **when: Unpack[When],
    ) -> Rule:
        """Lose the connection in the middle of a request, after ``size`` bytes of its frame.

        :param size: from 0; 4 bytes are the frame's length. At least its last byte is lost.
        """
        return self._add("tear_request", REQUESTS, name, Tear(size, then), **when)

    def tear_reply(
        self,
        name: str,
        *,
        size: int = 6,
        then: Then = "cut",
        **when: Unpack[When],
    ) -> Rule:
        """Lose the connection in the middle of a reply, after ``size`` bytes of its frame."""
        return self._add("tear_reply", REPLIES, name, Tear(size, then), **when)

    def swallow_event(self, kind: str | None = None, **when: Unpack[When]) -> Rule:
        """Lose a watch event and nothing else: nobody waits for its number.

        :param kind: ``created``, ``deleted``, ``changed`` or ``child``; None: any.
        """
        if kind not in (None, *jute.EVENTS):
            raise InvalidArgument("kind", kind, f"one of {', '.join(jute.EVENTS)}, or None")

        def meant(message: Message) -> bool:
            return kind in (None, jute.kind_of_event(message.frame))

        method = "swallow_event" if kind is None else f"swallow_event kind={kind}"
        return self._add(method, REPLIES, "event", Swallow(), also=meant, **when)

    # --- delaying ---------------------------------------------------------------------------

    def delay_request(self, name: str, **when: Unpack[When]) -> Rule:
        """Hold a request, and all that the client sends after it, until ``rule.release()``."""
        return self._add("delay_request", REQUESTS, name, Delay(), **when)

    def delay_reply(self, name: str, **when: Unpack[When]) -> Rule:
        """Hold a reply, and all that the server sends after it, until ``rule.release()``."""
        return self._add("delay_reply", REPLIES, name, Delay(), **when)

    # --- changing ---------------------------------------------------------------------------

    def fail(
        self,
        name: str,
        error: int | str,
        *,
        done: bool = False,
        **when: Unpack[When],
    ) -> Rule:
        """Answer a request with an error, in its turn.

        :param error: a code, such as -118, or its name in ZooKeeper, such as "NodeExists".
        :param done: whether the server does it all the same.
        """
        names_of(READS | WRITES, name)
        fault = Fail(error_code(error), done)
        return self._add(f"fail error={error}", REQUESTS, name, fault, **when)

    def answer_stale(self, name: str = "read", **when: Unpack[When]) -> Rule:
        """Answer a read as it was answered last before this rule was made, by old data.

        Fits only where the same question has been answered before. The reply has the zxid
        of its time: so answers a server that lags behind.
        """
        names_of(READS, name)
        with self._seen.changed:
            answers = dict(self._script.memory.answers)
        older = partial(proxy_memory.has_older, answers)
        fault = Rewrite(partial(proxy_memory.stale_answer, answers))
        return self._add("answer_stale", REPLIES, name, fault, also=older, **when)

    def rewrite_connect(
        self,
        *,
        session_id: int | None = None,
        timeout: float | None = None,
        read_only: bool | None = None,
        **when: Unpack[Count],
    ) -> Rule:
        """Change what a connect response grants; what is None stays.

        :param session_id: signed, 64 bit. The session of the server stays what it was.
        :param timeout: seconds; 0 says that the session has expired.
        :param read_only: whether the server says that it has no quorum.
        """
        rewrite = partial(
            rewritten_welcome, session_id=session_id, timeout=timeout, read_only=read_only
        )
        return self._add("rewrite_connect", REPLIES, "connect", Rewrite(rewrite), **when)

    def swap_session(self, **when: Unpack[Count]) -> Rule:
        """Let a reconnect get a new session without a word about the old one.

        Some servers do so (ClickHouse #116690). The old session lives on until it times out.
        """
        fault = Rewrite(new_session_request)
        return self._add("swap_session", REQUESTS, "connect", fault, also=resumes, **when)

    def rewrite_reply(
        self,
        name: str,
        rewrite: Callable[[bytes], bytes],
        **when: Unpack[When],
    ) -> Rule:
        """Change the body of a reply: what follows its header of xid, zxid and error.

        :param rewrite: called on the proxy's thread; what it raises is raised by
            ``rule.wait()``, and the connection ends.
        """
        return self._add(
            "rewrite_reply", REPLIES, name, Rewrite(partial(rewritten_body, rewrite)), **when
        )

    def shift_numbers(self, parent: str, by: int) -> None:
        """Show the children of a parent with sequence numbers that are higher by so many.

        As if so many children had been made there before: 2147483640 takes the next to
        the end of the range, and past it to negative numbers. Both ways, from now on and
        for good; give all clients of an election the same.
        """
        with self._seen.changed:
            self._script.shifts.append(Shift(parent, by))

    # --- cutting off ------------------------------------------------------------------------

    def isolate(self) -> None:
        """Be a server that has lost the others and does not know it, until :meth:`heal`.

        Nothing reaches a server any more, nor comes from one. The proxy itself answers
        pings, lets sessions that it knows reconnect, and answers reads as they were
        answered last. What takes a quorum it swallows, as it does a read that is new, and
        on that connection every later read with it, for answers come in order.
        """
        with self._seen.changed:
            self._script.isolated = True

    def heal(self) -> None:
        """End every cut and isolation. Connections that lost something are reset."""
        with self._seen.changed:
            self._script.isolated = False
        super().heal()

    # --- within -----------------------------------------------------------------------------

    def _add(
        self,
        method: str,
        direction: Direction,
        name: str,
        fault: Fault,
        *,
        also: Callable[[Message], bool] = anything,
        path: str | None = None,
        nth: int = 1,
        times: int | None = 1,
    ) -> Rule:
        names = names_meant(name, _MORE_NAMES[direction])
        pattern = Pattern(direction=direction, names=names, path=path, also=also)
        words = [*method.split(" "), *([] if path is None else [f"path={path}"])]
        label = " ".join([words[0], name, *words[1:]])
        rule = Rule(label, pattern, fault, nth, times, self._seen.changed, self.resume)
        with self._seen.changed:
            self._script.rules.append(rule)
        return rule


if __name__ == "__main__":
    from zkelect.testing.proxy_command import main

    sys.exit(main())
