"""What can happen between one candidate and the servers, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from exploration.alone import Alone, outcome_of
from exploration.ensemble import Fresh, Scene
from exploration.promises import Broken
from exploration.world import Candidate, Outcome, Servers
from zkelect.core import events as ev
from zkelect.core.state import Phase

__all__ = ["BETWEEN", "Meeting"]


def _free(scene: Scene) -> bool:
    state = scene.state
    if scene.it.campaigns == scene.alone.campaigns:
        return False
    return state.phase is Phase.IDLE or (state.phase is Phase.LEAVING and state.again is None)


def _counts_on(scene: Scene, session: int | None) -> bool:
    """Whether somebody counts on the lease of a session: then it cannot expire."""
    term = scene.state.term
    works = scene.it.backed and term is not None and term.session_id == session
    return works or (scene.it.leased and session == scene.state.session_id)


def _may_expire(scene: Scene) -> bool:
    return scene.lives and not _counts_on(scene, scene.state.session_id)


def _may_be_swept(scene: Scene) -> bool:
    return bool(scene.old_sessions) and not _counts_on(scene, scene.old_sessions[0])


def _is_overdue(scene: Scene) -> bool:
    return scene.overdue is not None and not _counts_on(scene, scene.overdue.owner)


def _lost(scene: Scene) -> bool:
    return not scene.state.connected and scene.state.session_id is not None


def _may_lag(scene: Scene) -> bool:
    return scene.it.before is not None and scene.it.before != scene.tree


def _new(scene: Scene) -> bool:
    return scene.state.session_id is None


def _looks_for_lost(scene: Scene) -> bool:
    """Whether a barrier is to be passed, behind which a lost create is looked for."""
    return isinstance(scene.request, ev.Commit) and scene.tree.parent


def _refusable(scene: Scene) -> bool:
    """A deletion that is refused leaves a znode, as it must; the rest must not."""
    return scene.request is not None and not isinstance(scene.request, ev.Delete | ev.Withdraw)


class Between(NamedTuple):
    """Something that can happen.

    :ivar faults: how many it counts for.
    """

    faults: int
    can: Callable[[Scene], object]
    act: Callable[[Scene], Outcome]


BETWEEN: Final[dict[str, Between]] = {
    # the program and its session
    "X campaigns": Between(0, _free, Scene.campaign),
    "X connects": Between(0, _new, Scene.open),
    "X reconnects": Between(0, lambda scene: _lost(scene) and scene.lives, Scene.resume),
    "X learns that its session is over": Between(
        0, lambda scene: _lost(scene) and not scene.lives, Scene.learn_expiry
    ),
    "X's probe is committed": Between(0, lambda scene: scene.probing, Scene.probe),
    "X connects to a server that lags": Between(
        1, lambda scene: _new(scene) and _may_lag(scene), lambda scene: scene.open(lags=True)
    ),
    "X reconnects to a server that lags": Between(
        1,
        lambda scene: _lost(scene) and scene.lives and _may_lag(scene),
        lambda scene: scene.resume(lags=True),
    ),
    "X is given another session": Between(1, _lost, Scene.open),
    # its requests
    "a server does X's request": Between(0, lambda scene: scene.request, Scene.serve),
    "X's server catches up": Between(0, lambda scene: scene.it.view is not None, Scene.catch_up),
    "X's create is done twice": Between(1, _looks_for_lost, Scene.create_again),
    "a server refuses X's request": Between(1, _refusable, Scene.refuse),
    # the servers, and whoever meddles with them
    "X's old session expires": Between(0, _may_be_swept, Scene.sweep),
    "X's session expires": Between(1, _may_expire, Scene.expire),
    "somebody closes X's session": Between(
        1, lambda scene: scene.lives and not _may_expire(scene), Scene.close
    ),
    "somebody deletes X's znode": Between(
        1, lambda scene: scene.own, lambda scene: scene.meddle(0)
    ),
    "somebody deletes X's second znode": Between(
        1, lambda scene: len(scene.own) > 1, lambda scene: scene.meddle(1)
    ),
    "somebody touches X's znode": Between(1, lambda scene: scene.own, Scene.touch),
    "somebody deletes the parent": Between(
        1, lambda scene: scene.is_a and scene.tree.parent, Scene.remove_parent
    ),
    "somebody deletes the record": Between(
        1,
        lambda scene: scene.is_a and scene.tree.generation,
        Scene.delete_record,
    ),
    "somebody raises the generation": Between(
        1,
        lambda scene: scene.is_a and scene.tree.generation,
        lambda scene: scene.set_generation(scene.tree.generation + 1),
    ),
    "somebody pauses the election": Between(
        1,
        lambda scene: scene.is_a and scene.tree.generation and not scene.tree.paused,
        Scene.pause,
    ),
    "somebody resumes the election": Between(
        1, lambda scene: scene.is_a and scene.tree.paused, Scene.unpause
    ),
    "an operator asks X to go": Between(
        1,
        lambda scene: scene.tree.generation and scene.is_first and not scene.overdue,
        Scene.ask_to_go,
    ),
    "an operator deletes X's znode, its lease being over": Between(
        0, _is_overdue, Scene.delete_overdue
    ),
    "an operator deletes X's znode, another being ahead": Between(
        1, lambda scene: scene.tree.generation and scene.waits, Scene.delete_waiting
    ),
}
"""What can happen, as a story tells it."""


class Meeting(Mapping[str, Outcome | Broken]):
    """What can come of a candidate and the servers; worked out when it is asked for.

    :param fresh: names for what they may make.
    """

    __slots__ = ("_alone", "_fresh", "_it", "_outcomes", "_servers")

    def __init__(self, alone: Alone, it: Candidate, servers: Servers, fresh: Fresh) -> None:
        self._alone, self._it, self._servers, self._fresh = alone, it, servers, fresh
        scene = self._scene()
        possible = (kind for kind, what in BETWEEN.items() if what.can(scene))
        self._outcomes: dict[str, Outcome | Broken | None] = dict.fromkeys(possible)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, kind: object) -> bool:
        return kind in self._outcomes

    def __getitem__(self, kind: str) -> Outcome | Broken:
        found = self._outcomes[kind]
        if found is None:
            found = self._outcomes[kind] = outcome_of(BETWEEN[kind].act, self._scene())
        return found

    def _scene(self) -> Scene:
        return Scene(self._alone, self._it, self._servers, self._fresh)
