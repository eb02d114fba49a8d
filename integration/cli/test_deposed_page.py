"""H11: inside ``deposed`` everything already says no, the page over HTTP included."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from election.waiting import WITHIN

import zkelect
import zkelect.server

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Actor, Operator


class Inquirer:
    """Asks, inside ``elected`` and ``deposed``, whoever might be asked."""

    def __init__(self, url: str, election: zkelect.Election) -> None:
        self.answers: dict[str, tuple[object, ...]] = {}
        self.asked = threading.Event()
        self._url = url
        self._election = election

    def elected(self, leadership: zkelect.Leadership) -> None:
        self._note("elected", leadership)
        self.asked.set()

    def suspended(self, leadership: zkelect.Leadership) -> None:
        """Nothing is asked then."""

    def deposed(self, leadership: zkelect.Leadership) -> None:
        self._note("deposed", leadership)

    def _note(self, what: str, leadership: zkelect.Leadership) -> None:
        try:
            checked = leadership.check() == leadership.token
        except zkelect.LeadershipLost:
            checked = False
        leads = self._election.phase is zkelect.Phase.LEADING
        self.answers[what] = (checked, leads, status_of(f"{self._url}/leader"))


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own
            status: int = answer.status
            return status
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.parametrize("cause", ["resigned", "evicted", "lapsed", "closed"])
def test_h11_inside_deposed_check_phase_and_page_say_no(
    cast: Callable[..., Actor], operator: Operator, path: str, cause: str
) -> None:
    """CAMEL-24457."""
    actor = cast("host-a")
    with zkelect.server.serve("127.0.0.1:0", actor.election) as listener:
        inquirer = Inquirer(listener.url, actor.election)
        actor.listen(inquirer)
        leadership = actor.lead()
        assert inquirer.asked.wait(WITHIN)
        acts: dict[str, Callable[[], object]] = {
            "resigned": actor.election.resign,
            "evicted": lambda: operator.delete(path, leadership.node),
            "lapsed": actor.forwarder.cut,
            "closed": actor.session.close,
        }
        acts[cause]()
        assert actor.diary.wait("deposed").reason == cause
        actor.forwarder.heal()
        actor.session.close()  # what was called back has returned then
    assert inquirer.answers == {"elected": (True, True, 200), "deposed": (False, False, 503)}
