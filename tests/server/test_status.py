"""A candidate's status: one look, at one moment, that no term can slip through."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from session.troupe import PATH

import zkelect
from zkelect.session.status import read_status

if TYPE_CHECKING:
    from session.troupe import Troupe

    from zkelect.testing import FakeEnsemble


def test_it_tells_all_that_the_process_knows(troupe: Troupe) -> None:
    a = troupe.lead("A")
    status = a.election.status()
    assert status == zkelect.Status(
        path=PATH,
        name="A",
        phase=zkelect.Phase.LEADING,
        serving=True,
        remaining=a.terms[0].remaining(),
        token=a.terms[0].token,
        ahead=None,
        connected=True,
        usable=True,
    )


def test_it_never_shows_a_session_id(troupe: Troupe) -> None:
    a = troupe.lead("A")
    assert f"{a.terms[0].session_id:x}" not in repr(a.election.status())


def test_a_term_that_begins_while_one_looks_is_not_told_yet(troupe: Troupe) -> None:
    """The machine may step on another thread, between the two reads: the old phase is no
    word about the new leadership, which only prepares."""
    a = troupe.lead("A", on_suspended="until-deadline")
    (valid,) = a.terms

    class Between:
        """Says "leading" of a term that is over, and is granted another one just then."""

        session, path, name, ahead = a.session, PATH, "A", None
        leadership: zkelect.Leadership | None = None

        @property
        def phase(self) -> zkelect.Phase:
            self.leadership = valid
            return zkelect.Phase.LEADING

    candidacy: Any = Between()
    assert not read_status(candidacy).serving
    assert read_status(candidacy).serving  # the next look is of the new one


def test_a_forked_child_is_nobody(troupe: Troupe, monkeypatch: pytest.MonkeyPatch) -> None:
    a = troupe.lead("A")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    status = a.election.status()
    assert (status.serving, status.remaining, status.token) == (False, 0.0, None)
    assert (status.phase, status.connected, status.usable) == ("idle", False, False)


def test_a_session_that_the_servers_refuse_is_not_usable(
    troupe: Troupe, fake: FakeEnsemble
) -> None:
    a = troupe.lead("A")
    with a.session.lock:
        a.session.fatal = zkelect.AuthenticationFailed(a.session.hosts, "digest")
    assert not a.election.status().usable
