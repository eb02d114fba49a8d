"""The pages: 200 while the lease of this very process says so, and at no other time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from session.crew import ROOT, Crew
from session.troupe import PATH, T
from starlette.applications import Starlette
from starlette.routing import Mount

import zkelect
from zkelect import server
from zkelect.testing import expire
from zkelect.testing.fake_machine import Move

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.conftest import Client
    from session.troupe import Member, Troupe

    from zkelect.testing import FakeEnsemble

METHODS = ["GET", "HEAD", "OPTIONS"]
LEADING = zkelect.Status(
    path="/elections/billing",
    name="host-a",
    phase=zkelect.Phase.LEADING,
    serving=True,
    remaining=1.23456,
    token=zkelect.Token(lineage="0" * 16, generation=1, czxid=2, holder="1" * 16),
    ahead=None,
    connected=True,
    usable=True,
)


@attrs.define
class Source:
    """An election whose status a test writes."""

    found: zkelect.Status = LEADING
    path: str = LEADING.path

    def status(self) -> zkelect.Status:
        return self.found


# --- what is answered -------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/leader", "/leader/elections/billing", "/health"])
@pytest.mark.parametrize("method", METHODS)
def test_each_method_is_answered_alike(
    path: str, method: str, pages: Callable[..., Client]
) -> None:
    source = Source()
    client = pages(source)
    answer, got = client.ask(path, method), client.ask(path)
    assert answer.status_code == got.status_code == 200
    assert answer.headers["content-length"] == str(len(got.content))
    assert answer.headers["cache-control"] == "no-store"
    assert ("allow" in answer.headers) == (method == "OPTIONS")
    source.found = attrs.evolve(LEADING, serving=False, usable=False)
    assert client.ask(path, method).status_code == 503


def test_the_body_tells_who_and_how_long(pages: Callable[..., Client]) -> None:
    assert pages(Source()).ask("/leader").json() == {
        "path": "/elections/billing",
        "name": "host-a",
        "phase": "leading",
        "serving": True,
        "remaining": 1.234,  # not one millisecond more than there is
        "token": "00000001-0000000000000002-0000000000000000-1111111111111111",
        "ahead": None,
        "connected": True,
    }


def test_a_name_does_a_terminal_no_harm(pages: Callable[..., Client]) -> None:
    answer = pages(Source(attrs.evolve(LEADING, name="a\x1b[2J\u202eb"))).ask("/leader")
    assert answer.content.rstrip(b"\n").isascii()
    assert answer.content.rstrip(b"\n").decode().isprintable()
    assert answer.json()["name"] == "a\x1b[2J\u202eb"


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/leader/", "GET", 404),
        ("/leader/elections", "GET", 404),
        ("/leaders", "GET", 404),
        ("/health/", "GET", 404),
        ("/leader", "POST", 405),
    ],
)
def test_what_is_not_there_is_told_and_never_cached(
    path: str, method: str, status: int, pages: Callable[..., Client]
) -> None:
    answer = pages(Source()).ask(path, method)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert answer.headers["cache-control"] == "no-store"
    if status == 405:
        assert {*answer.headers["allow"].split(", ")} == set(METHODS)


def test_it_can_be_mounted_in_an_application(client: type[Client]) -> None:
    app = Starlette(routes=[Mount("/zk", server.application(Source()))])
    for path in ("/zk/", "/zk/leader", "/zk/leader/elections/billing", "/zk/health"):
        assert client(app).ask(path).status_code == 200
    assert client(app).ask("/zk/leader/other").status_code == 404


# --- several elections ------------------------------------------------------------------------


def test_of_several_elections_each_is_asked_by_its_path(pages: Callable[..., Client]) -> None:
    waiting = attrs.evolve(LEADING, path="/elections/stöck", serving=False)
    client = pages(Source(), Source(waiting, waiting.path))
    assert client.ask("/leader/elections/billing").status_code == 200
    assert client.ask("/leader/elections/stöck").status_code == 503
    for path in ("/", "/leader"):
        answer = client.ask(path)
        assert answer.status_code == 404
        assert "ask /leader/<path>" in answer.json()["error"]


def test_of_a_group_too(fake: FakeEnsemble, pages: Callable[..., Client]) -> None:
    worker = Crew(fake).hire("alone", limit=1).add("a", "b")
    fake.advance(T)
    (led,) = worker.led
    (other,) = {"a", "b"} - {led}
    client = pages(worker.group, Source())
    assert client.ask(f"/leader{ROOT}/{led}").json()["name"] == "alone"
    assert client.ask(f"/leader{ROOT}/{led}").status_code == 200
    assert client.ask(f"/leader{ROOT}/{other}").status_code == 503
    assert client.ask(f"/leader{ROOT}/c").status_code == 404
    assert client.ask("/leader").status_code == 404
    assert client.ask("/leader/elections/billing").status_code == 200
    assert client.ask("/health").status_code == 200
    worker.session.close()
    assert client.ask("/health").status_code == 503


def test_an_election_that_leaves_its_group_while_one_asks(
    fake: FakeEnsemble, pages: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Crew(fake).hire("alone").add("a")
    client = pages(worker.group)
    monkeypatch.setattr(zkelect.ElectionGroup, "__iter__", lambda _: iter(["gone", "a"]))
    assert client.ask("/health").status_code == 200
    worker.session.close()
    assert client.ask("/health").status_code == 503


@pytest.mark.parametrize("elections", [[], [Source(), Source()]], ids=["none", "twice"])
def test_which_election_is_meant_must_be_clear(elections: list[Source]) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="one or more, each of another path"):
        server.application(*elections)


# --- every phase ------------------------------------------------------------------------------


def look(client: Client) -> tuple[int, dict[str, Any]]:
    answer = client.ask("/leader")
    return answer.status_code, answer.json()


def test_every_phase_but_leading_is_503(
    troupe: Troupe, fake: FakeEnsemble, pages: Callable[..., Client]
) -> None:
    seen: list[tuple[int, dict[str, Any]]] = []
    a: Member = troupe.cast("A", prepare=lambda _: seen.append(look(pages(a.election))))
    client = pages(a.election)
    assert look(client)[0] == 503 and look(client)[1]["phase"] == "idle"
    fake.hold(a.session, Move.ANSWER)
    a.start()
    assert look(client)[0] == 503 and look(client)[1]["phase"] == "joining"
    fake.release(a.session)
    troupe.until(lambda: a.terms, "A is elected")
    (prepared,) = seen
    assert prepared[0] == 503 and prepared[1]["phase"] == "preparing"
    assert prepared[1]["token"] is not None and not prepared[1]["serving"]
    assert look(client)[0] == 200 and look(client)[1]["phase"] == "leading"
    assert look(client)[1]["token"] == str(a.terms[0].token)
    assert 0 < look(client)[1]["remaining"] <= a.terms[0].remaining()
    a.election.resign()  # its znode is still there
    assert look(client)[0] == 503
    assert look(client)[1]["phase"] == "leaving"
    assert (look(client)[1]["token"], look(client)[1]["remaining"]) == (None, 0.0)


def test_who_waits_is_503_and_tells_its_place(troupe: Troupe, pages: Callable[..., Client]) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    c = troupe.queue("C")
    assert look(pages(a.election))[0] == 200
    for each, ahead in ((b, 1), (c, 2)):
        status, told = look(pages(each.election))
        assert (status, told["phase"], told["ahead"]) == (503, "waiting", ahead)


def test_h73_the_page_goes_by_the_clock_and_not_by_what_it_was_told(
    troupe: Troupe, fake: FakeEnsemble, pages: Callable[..., Client]
) -> None:
    """A process that was stopped answers at once when it goes on, before anything else."""
    a = troupe.lead("A")
    client = pages(a.election)
    fake.cut(a.session, "requests", "replies")
    left = a.terms[0].remaining()
    fake.pause(a.session)  # nothing in A's process runs from here on, but its clock goes on
    fake.elapse(left - 0.01)
    assert look(client)[0] == 200
    fake.elapse(0.01)
    assert a.ends == []
    assert look(client)[0] == 503
    assert look(client)[1]["phase"] == "leaving"


def test_a_pause_at_once_is_503_while_the_link_is_down(
    troupe: Troupe, fake: FakeEnsemble, pages: Callable[..., Client]
) -> None:
    a = troupe.lead("A", on_suspended="pause-at-once")
    client = pages(a.election)
    fake.drop(a.session)
    fake.cut(a.session, "requests", "replies")
    troupe.until(lambda: not a.election.status().connected, "A hears that the link is down")
    assert a.ends == []
    status, told = look(client)
    assert (status, told["phase"], told["connected"]) == (503, "leading", False)
    assert client.ask("/health").json() == {"healthy": True, "connected": False}


def test_the_answer_asks_no_server(troupe: Troupe, pages: Callable[..., Client]) -> None:
    a, b = troupe.lead("A"), troupe.queue("B")
    asked = {session: len(requests) for session, requests in troupe.asked.items()}
    for member in (a, b):
        for path in ("/leader", "/health"):
            pages(member.election).ask(path)
    assert {session: len(requests) for session, requests in troupe.asked.items()} == asked


def test_the_answer_waits_for_no_lock(troupe: Troupe, pages: Callable[..., Client]) -> None:
    """Whoever holds it may be waiting itself."""
    a = troupe.lead("A")
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with a.session.lock:
            taken.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    try:
        assert look(pages(a.election))[0] == 200
        assert pages(a.election).ask("/health").status_code == 200
    finally:
        done.set()
        holder.join()


def ends(member: Member, how: str, fake: FakeEnsemble) -> None:
    if how == "expired":
        expire(member.session)
    elif how == "evicted":
        fake.delete(f"{PATH}/{fake.children(PATH)[0]}")
    elif how == "resigned":
        member.election.resign()
    else:
        member.session.close()


@pytest.mark.parametrize("how", ["expired", "evicted", "resigned", "closed"])
def test_h73_the_page_says_no_before_the_successor_leads(
    how: str, troupe: Troupe, fake: FakeEnsemble, pages: Callable[..., Client]
) -> None:
    """Event by event: whenever B says yes, A says no. B hears of it last, as by luck."""
    a, b = troupe.lead("A"), troupe.queue("B")
    ours, theirs = pages(a.election), pages(b.election)
    fake.hold(b.session, Move.EVENT)
    ends(a, how, fake)
    troupe.until(lambda: look(ours)[0] == 503, "A's page says no")
    assert look(theirs)[0] == 503
    fake.release(b.session)
    troupe.until(lambda: look(theirs)[0] == 200, "B's page says yes")
    assert look(ours)[0] == 503


# --- health -----------------------------------------------------------------------------------


def test_health_is_of_the_process_and_not_of_zookeeper(
    troupe: Troupe, fake: FakeEnsemble, pages: Callable[..., Client]
) -> None:
    """Or whoever probes would end every candidate because the servers are away."""
    a = troupe.lead("A")
    client = pages(a.election)
    assert client.ask("/health").json() == {"healthy": True, "connected": True}
    fake.cut(a.session, "requests", "replies")
    troupe.until(lambda: not a.session.connected, "the link is down")
    assert client.ask("/health").status_code == 200
    assert client.ask("/health").json() == {"healthy": True, "connected": False}
    assert client.ask("/leader").status_code == 200  # its lease goes on
    a.session.close()
    assert client.ask("/health").status_code == 503
    assert client.ask("/health").json() == {"healthy": False, "connected": False}
