"""``zkelect promote``: its options, its table, and the command that switches a server off."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

import zkelect
from zkelect.cli.drawing import Page as Paper
from zkelect.cli.promote.agent import Attendance
from zkelect.cli.promote.command import promote
from zkelect.cli.promote.fencing import fence_by
from zkelect.cli.promote.status import describe
from zkelect.recipes.choice import Verdict
from zkelect.recipes.clock import now
from zkelect.recipes.member import Answer, Heartbeat, Member, Observed, Role
from zkelect.recipes.operating import ClusterStatus
from zkelect.recipes.page import Page, Phase
from zkelect.recipes.position import Branch, Position
from zkelect.recipes.resource import Resource

POSITION = Position((Branch("1-1"),), 4711)
MEMBER = Member(name="beta", address="host=10.0.0.2 port=5432")


def cluster(**changes: object) -> ClusterStatus:
    beat = Heartbeat(
        member=MEMBER, observed=Observed(role=Role.REPLICA, position=POSITION, behind=17)
    )
    known = {
        "page": Page(phase=Phase.STEADY, token="t", coordinator="beta", primary="alpha"),
        "beats": (beat,),
        "verdicts": (
            Verdict(name="alpha", reason="not there: its agent has no session"),
            Verdict(name="beta", position=POSITION),
        ),
        "coordinator": "beta",
        "holder": None,
        "sync": None,
        "paused": None,
    }
    return ClusterStatus(**{**known, **changes})  # type: ignore[arg-type]  # of any type


def drawn(found: ClusterStatus) -> list[str]:
    return [line.text for line in describe(Paper(width=80, longest=1000), "/cluster", found)]


# --- the table ---------------------------------------------------------------------------------


def test_each_member_has_its_role_its_position_and_why_it_could_not_win() -> None:
    assert drawn(cluster()) == [
        "/cluster: alpha is primary",
        "coordinator: beta; may write: nobody",
        "",
        "member  role     offset  behind  why not eligible",
        "──────  ───────  ──────  ──────  ───────────────────────────────────",
        "alpha   absent                   not there: its agent has no session",
        "beta    replica    4711      17",
    ]


def test_on_a_narrow_page_the_reasons_are_told_below_and_whole() -> None:
    name, reason = "gamma-in-the-far-away-datacentre", "it lacks 4711 offsets, more than the limit"
    verdicts = (Verdict(name=name, reason=reason), Verdict(name="beta", position=POSITION))
    lines = drawn(cluster(verdicts=verdicts))
    assert max(map(len, lines)) <= 80
    assert lines[-1] == f"{name}: {reason}"


def test_why_a_change_is_made_is_told_to_its_end() -> None:
    why = "the server of alpha is there, and does not answer: " + "connection refused, " * 3 + "so"
    page = Page(phase=Phase.DEMOTE, token="t", coordinator="beta", primary="alpha", why=why)
    lines = drawn(cluster(page=page))
    assert (
        " ".join(line.strip() for line in lines[:2])
        == f"/cluster: demote, alpha was primary: {why}"
    )


def test_what_is_under_way_and_paused_is_told() -> None:
    page = Page(phase=Phase.FREEZE, token="t", coordinator="beta", primary="alpha", why="it died")
    pause = zkelect.Pause(by="ada", why="a rehearsal", since=0.0)
    lines = drawn(cluster(page=page, paused=pause))
    assert lines[0] == "/cluster: freeze, alpha was primary: it died"
    assert str(pause) in lines


def test_a_path_that_nobody_looks_after() -> None:
    lines = drawn(cluster(page=None, verdicts=(), coordinator=None))
    assert lines == [
        "/cluster: nobody looks after it yet, or it has another path or chroot",
        "coordinator: nobody; may write: nobody",
    ]


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["postgres", "status", "switchover", "pause", "resume"])
def test_every_command_has_a_help(name: str) -> None:
    done = CliRunner().invoke(promote, [name, "--help"])
    assert done.exit_code == 0
    assert "--hosts" in done.output


@pytest.fixture
def looked_after(monkeypatch: pytest.MonkeyPatch) -> list[Resource]:
    found: list[Resource] = []
    monkeypatch.setattr(Attendance, "look_after", lambda _, server: found.append(server))
    return found


POSTGRES = (
    *("postgres", "/cluster", "--name", "a", "--address", "host=10.0.0.1"),
    *("--hosts", "127.0.0.1:1", "--data", "/", "--local", "host=/run", "--credentials", "user=me"),
)


def begin(*options: str) -> str:
    """Return what was refused, empty when nothing was."""
    done = CliRunner().invoke(promote, [*POSTGRES, *options])
    assert done.exit_code in (0, 2), done.output
    return done.output


def test_a_server_is_that_of_the_options(looked_after: list[Resource]) -> None:
    assert begin("--priority", "7", "--no-promote", "--fence", "true --now") == ""
    (server,) = looked_after
    assert server.member == Member(name="a", address="host=10.0.0.1", priority=7, candidate=False)
    assert server.fence(MEMBER, now() + 30) is Answer.YES


def test_without_a_fence_nobody_is_fenced(looked_after: list[Resource]) -> None:
    assert begin() == ""
    assert looked_after[0].fence(MEMBER, now() + 30) is Answer.NO


def test_a_fence_that_must_be_and_is_not_there(looked_after: list[Resource]) -> None:
    assert "--require-fence, and no --fence" in begin("--require-fence")
    assert begin("--require-fence", "--fence", "true") == ""
    assert len(looked_after) == 1


def test_a_fence_that_cannot_be_run_is_found_before_it_is_needed(
    looked_after: list[Resource],
) -> None:
    refused = begin("--fence", "/nonexistent/switch off")
    assert "Invalid value for '--fence'" in refused
    assert "'/nonexistent/switch' is no program" in refused
    assert not looked_after


# --- switching a server off ----------------------------------------------------------------------


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


def test_a_command_that_ends_well_has_fenced() -> None:
    script = "import sys; sys.exit(sys.argv[1:] != ['beta', 'host=10.0.0.2 port=5432'])"
    assert fence_by(python(script))(MEMBER, now() + 30) is Answer.YES


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        pytest.param(python("raise SystemExit(1)"), 30.0, id="failed"),
        pytest.param(("/nonexistent/switch",), 30.0, id="not there"),
        pytest.param(python("import time; time.sleep(60)"), 0.3, id="too late"),
    ],
)
def test_whatever_else_happens_nobody_knows(command: tuple[str, ...], seconds: float) -> None:
    assert fence_by(command)(MEMBER, now() + seconds) is Answer.UNKNOWN


@pytest.mark.parametrize("kind", ["postgres", "redis", "mariadb", "hooks"])
def test_only_who_can_wait_for_others_is_offered_that(kind: str) -> None:
    said = CliRunner().invoke(promote, [kind, "--help"]).output
    assert ("--synchronous" in said) == (kind == "postgres")


@pytest.mark.parametrize("name", sorted(promote.commands))
def test_the_list_of_the_commands_tells_each_whole(name: str) -> None:
    """Click cuts a docstring's first line off with dots."""
    listed = CliRunner().invoke(promote, ["--help"], terminal_width=80).output.splitlines()
    (line,) = (each for each in listed if each.split()[:1] == [name])
    assert line.endswith(".")
    assert not line.endswith("..")
