"""The agent, one for each server: it tells how that is, and does what the page asks."""

from __future__ import annotations

import logging
import threading
from typing import Final

import attrs

import zkelect
from zkelect.recipes.admission import admit
from zkelect.recipes.board import Board
from zkelect.recipes.choice import Policy
from zkelect.recipes.clock import now
from zkelect.recipes.coordinator import Coordinator
from zkelect.recipes.duty import Act, duty_of
from zkelect.recipes.member import (
    Answer,
    Done,
    Heartbeat,
    Observed,
    Outcome,
    Role,
)
from zkelect.recipes.notes import encode
from zkelect.recipes.office import Office
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.performer import Performer
from zkelect.recipes.pools import await_pools
from zkelect.recipes.resource import NeedsRebuild, NotNow, Resource
from zkelect.recipes.standing import Standing, answers_reads
from zkelect.recipes.synchrony import Synchrony

__all__ = ["Agent"]

_log: Final = logging.getLogger("zkelect.recipes")
_SHARE: Final = 3
"""For pools is waited this part of the time that a step may take."""
_BRIEF: Final = 0.05
_WITNESSED: Final = (Phase.STEADY, Phase.DEMOTE)


class Agent:
    """Looks after one server of a replicated cluster.

    Promises: the server takes writes only while this agent leads in the primary's election with
    the token that the page names; it is demoted before the lease of that ends, and never opened
    by itself again.

    :param session: with the ensemble; its timeout decides how soon a dead primary is missed.
    :param path: of the cluster in ZooKeeper; the same for all agents.
    :param resource: the server. :param policy: the same for all agents.
    :param margin: seconds before the end of the lease at which a primary is demoted, above the
        time that takes; a tenth of the session timeout when None.
    :param interval: seconds between two looks at the server.
    """

    def __init__(
        self,
        session: zkelect.Session,
        path: str,
        resource: Resource,
        *,
        policy: Policy | None = None,
        margin: float | None = None,
        interval: float = 0.5,
    ) -> None:
        policy = Policy() if policy is None else policy
        margin = session.timeout / 10 if margin is None else margin
        if not 0 < margin < session.timeout / 2:
            raise zkelect.InvalidArgument("margin", margin, "seconds, below half the session's T")
        self._board = board = Board(session, path)
        self._session = session
        self._resource = resource
        self._name = name = resource.member.name
        self._interval = interval
        self._policy = policy
        self._office = Office(session, board.primary, name, resource, margin=margin)
        self._synchrony = Synchrony(board, resource, policy)
        self._performer = Performer(board, resource, self._office, self._synchrony, policy)
        self._coordinator = Coordinator(board, name, policy, interval=min(interval, 0.2))
        self._done: Done | None = None
        self._rebuild = ""
        self._hurries = False
        self._testimony: tuple[str | None, Answer] = (None, Answer.UNKNOWN)
        self._trouble = ""
        self._broken: Exception | None = None
        self._rules = policy.told()
        self._page: Page | None = None
        self._version = -1
        self._seen = Observed(role=Role.UNKNOWN, healthy=False), now()

    def run(self, stop: threading.Event) -> None:
        """Look after the server until ``stop`` is set; then a primary is demoted, in good order.

        :raises Unfit: the server cannot be looked after.
        :raises zkelect.NameTaken: another agent uses this name.
        :raises zkelect.ZkelectError: ZooKeeper cannot be used any more, such as for its password.
        """
        self._resource.check()
        self._board.prepare()
        self._refuse_strangers()
        done = threading.Event()
        coordinating = threading.Thread(
            target=self._coordinate, args=(done, stop), name=f"zkelect {self._board.coordinator}"
        )
        try:
            with self._board.register(self._beat(self._observed())) as registration:
                coordinating.start()
                with self._board.pages() as pages:
                    while not stop.is_set():
                        acted = self._turn(pages, registration)
                        self._rest(pages, brief=acted)
        finally:
            done.set()
            self._retire()
            if coordinating.ident is not None:
                coordinating.join()
        if self._broken is not None:
            raise self._broken

    def standing(self) -> Standing:
        """Return where the server stands, as we know it: at once, without a lock or a server.

        Its writers are told by the lease alone, so that nobody else is open at that moment, also
        when this agent has hung.
        """
        held, (seen, at) = self._office.serving, self._seen
        remaining = 0.0 if held is None else self._office.deadline(held) - now()
        primary = remaining > 0 and seen.role is Role.PRIMARY
        return Standing(
            path=self._board.path,
            name=self._name,
            primary=primary,
            replica=answers_reads(self._page, self._name, seen, age=now() - at),
            role=seen.role,
            behind=seen.behind,
            remaining=max(remaining, 0.0),
            token=str(held.token) if held is not None and primary else None,
            connected=self._session.connected,
            usable=not self._session.ended,
        )

    def _refuse_strangers(self) -> None:
        """Look, before anything is touched, whether this server belongs here.

        :raises Unfit: it does not.
        """
        page, _ = self._board.page()
        system = self._resource.observe().system
        admit(self._board.path, self._resource.member, system, page, self._board.beats())

    # --- one turn ------------------------------------------------------------------------------

    def _turn(self, pages: zkelect.Following, registration: zkelect.Registration) -> bool:
        """Look at page and server, do one duty, then tell: whoever waits waits for the duty.

        How the server is after the duty is told in the next turn, which is soon, or after the next
        duty: until that is done nobody can write. But who has let writers in says so at once: if
        the agent dies now, its last word must not be that its server takes no writes.

        :returns: whether a duty was done just now.
        """
        try:
            new = self._read(pages)
            observed = self._recent() if new else self._observed()
            act = self._act(observed)
            if act is Act.OPEN:
                observed = self._observed()
            self._hurries = act is not Act.NOTHING and (new or not self._hurries)
            registration.update(encode(self._beat(observed, ask=not self._hurries)))
        except zkelect.Unreachable as error:
            _log.info("%s: the agent of %s tries again: %s", self._board.path, self._name, error)
            return False
        return self._hurries

    def _read(self, pages: zkelect.Following) -> bool:
        """Read the page; return whether it asks for something new."""
        znode = pages.znode
        page, before = self._board.page_of(znode), self._page
        new = page is not None and (before is None or page.serial != before.serial)
        self._page, self._version = page, -1 if znode is None else znode.version
        return new

    def _recent(self) -> Observed:
        """Return how the server was when it was looked at last, if that was just now."""
        seen, at = self._seen
        return seen if now() - at < self._interval else self._observed()

    def _observed(self) -> Observed:
        """Look at the server; one that cannot even be looked at is no candidate."""
        try:
            seen = self._resource.observe()
        except Exception as error:  # noqa: BLE001  # the resource's own; told as what it is
            _log.exception("%s: %s cannot be looked at", self._board.path, self._name)
            seen = Observed(role=Role.UNKNOWN, healthy=False, detail=repr(error))
        seen = attrs.evolve(seen, rebuild=self._rebuild or seen.rebuild)
        self._seen = seen, now()
        return seen

    def _beat(self, observed: Observed, *, ask: bool = False) -> Heartbeat:
        """Return what to tell.

        :param ask: ask the primary's server, too; else tell what it said last.
        """
        if ask:
            self._testimony = self._witness()
        witnessed, sees = self._testimony
        return Heartbeat(
            member=self._resource.member,
            observed=observed,
            done=self._done,
            sees=sees,
            witnessed=witnessed,
            token=self._office.token,
            trouble=self._trouble,
            rules=self._rules,
        )

    def _witness(self) -> tuple[str | None, Answer]:
        """Ask the primary's server directly, when somebody may want to know."""
        page = self._page
        primary = None if page is None else page.member(page.primary)
        if page is None or primary is None or primary.name == self._name:
            return None, Answer.UNKNOWN
        if page.phase not in _WITNESSED or page.planned:
            return None, Answer.UNKNOWN
        try:
            return primary.name, self._resource.reach(primary)
        except Exception:  # noqa: BLE001  # the resource's own: then nothing is known
            _log.exception("%s: %s cannot ask %s", self._board.path, self._name, primary.name)
            return primary.name, Answer.UNKNOWN

    def _act(self, observed: Observed) -> Act:
        """Do what the page asks, unless that is done; return what was done now."""
        page = self._page
        act = duty_of(page, self._name, observed, token=self._office.token)
        if page is None:
            return Act.NOTHING
        if page.holder != self._name and self._office.busy and not self._office.token:
            self._office.leave()  # whoever is not named does not stay in the queue either
        if act is Act.NOTHING:
            self._trouble = self._serve(page, observed)
            return Act.NOTHING
        if self._is_done(act, page, observed):
            return Act.NOTHING
        before, self._done = self._done, self._perform(act, page)
        done = self._done
        fresh = done is not before and done is not None and done.outcome is Outcome.DONE
        return act if fresh else Act.NOTHING

    def _serve(self, page: Page, observed: Observed) -> str:
        """As the primary, keep who is in step; of one that is down nobody can be told to be.

        :returns: what was in the way, for people.
        """
        held = self._office.leadership
        serves = page.phase is Phase.STEADY and observed.role is Role.PRIMARY
        if not serves or page.primary != self._name or held is None:
            return ""
        try:
            self._synchrony.keep(page, held, self._version)
        except zkelect.Unreachable:
            raise
        except Exception as error:  # noqa: BLE001  # the resource's own; it serves all the same
            return self._told(f"cannot keep who is in step: {_text(error)}")
        return ""

    def _perform(self, act: Act, page: Page) -> Done | None:
        """Do it; what went wrong is told to the coordinator, and what is to be repeated is not."""
        asked = act is not Act.DEMOTE or (page.phase, page.primary) == (Phase.DEMOTE, self._name)
        try:
            if act is Act.DEMOTE and asked and page.planned:
                self._wait_for_pools(page)
            done = self._performer.perform(act, page, self._version)
        except NotNow as error:
            self._trouble = self._told(f"does not {act} yet: {error}")
            return self._done
        except NeedsRebuild as error:
            self._rebuild, self._trouble = str(error), ""
            _log.error("%s: %s needs a rebuild: %s", self._board.path, self._name, error)
            return Done(serial=page.serial, outcome=Outcome.FAILED, detail=str(error))
        except zkelect.Unreachable:
            raise
        except Exception as error:  # noqa: BLE001  # the resource's own; it is told
            _log.debug("%s: %s could not %s", self._board.path, self._name, act, exc_info=True)
            self._trouble = self._told(f"could not {act}: {_text(error)}", logging.ERROR)
            return Done(
                serial=page.serial,
                outcome=Outcome.FAILED,
                token=self._office.token,
                detail=_text(error),
            )
        self._trouble = ""
        if act is Act.FOLLOW:  # that has proven that it can; until then it may not win
            self._rebuild = ""
        return done if asked else self._done

    def _told(self, trouble: str, level: int = logging.INFO) -> str:
        """Log it, once as long as it is the same: it is tried again twice a second."""
        if trouble != self._trouble:
            _log.log(level, "%s: %s %s", self._board.path, self._name, trouble)
        return trouble

    def _wait_for_pools(self, page: Page) -> None:
        """Close the server only when its pools hold their clients back, but not too late."""
        deadline = now() + self._policy.phase_timeout / _SHARE
        if late := await_pools(self._board, page.serial, deadline):
            _log.warning("%s: not held back: the clients of %s", self._board.path, ", ".join(late))

    def _is_done(self, act: Act, page: Page, observed: Observed) -> bool:
        """Whether this page's duty was done, and what it made is still so."""
        done = self._done
        if done is None or done.serial != page.serial:
            return False
        if act in (Act.PROMOTE, Act.OPEN):
            return done.outcome is Outcome.FAILED or done.token == self._office.token != ""
        if act is Act.FOLLOW:
            follows = done.outcome is Outcome.DONE and observed.role is Role.REPLICA
            return follows or bool(self._rebuild)
        if act is Act.DEMOTE and (self._office.busy or observed.role is Role.PRIMARY):
            return False
        if act is Act.CATCH_UP:
            return True  # also when it failed: the coordinator chooses again
        return done.outcome is Outcome.DONE and done.answer is not Answer.UNKNOWN

    def _rest(self, pages: zkelect.Following, *, brief: bool) -> None:
        """Until the page changes, or it is time to look again; soon when we wait to be elected."""
        brief = brief or (self._office.busy and not self._office.token)
        try:
            pages.wait(min(_BRIEF, self._interval) if brief else self._interval)
        except zkelect.Unreachable as error:
            _log.info("%s: the page cannot be read: %s", self._board.path, error)

    # --- beginning and end -----------------------------------------------------------------------

    def _coordinate(self, done: threading.Event, stop: threading.Event) -> None:
        """Stand as a coordinator; without one of us the cluster has none, so its end is ours."""
        election = zkelect.Election(self._session, self._board.coordinator, name=self._name)
        try:
            election.run_forever(self._coordinator.lead, stop=done)
        except Exception as error:  # noqa: BLE001  # the agent ends with it, and by it
            _log.exception("%s: %s coordinates no more", self._board.path, self._name)
            self._broken = error
            stop.set()

    def _retire(self) -> None:
        """Demote a primary in good order, before the right to be writable is given up."""
        if self._office.busy and self._page is not None:
            try:
                self._performer.perform(
                    Act.DEMOTE, attrs.evolve(self._page, planned=True, phase=Phase.DEMOTE), -1
                )
            except Exception:  # noqa: BLE001  # the office does it again, until it has worked
                _log.exception("%s: %s is demoted in haste", self._board.path, self._name)
        self._office.leave()


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
