"""H71: how ``zkelect run`` ends, and what its command finds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.household import HEART, await_death
from election.waiting import WITHIN, boottime, until
from kazoo.security import make_digest_acl

from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.household import Household
    from conftest import Actor, Operator

    from zkelect.testing import LocalEnsemble

    Begin = Callable[..., Household]

GLIBCS_OWN = 0b11 << 31
"""Signals 32 and 33, which glibc ignores in whatever posix_spawn(3) starts."""

SLEEP = ("--", "sleep", "600")


def shell(script: str) -> tuple[str, ...]:
    return "--", "sh", "-c", script


# --- the command's own end --------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 75, 255])
def test_h71_the_status_is_the_commands_own(household: Begin, status: int) -> None:
    assert household(*shell(f"exit {status}")).end().status == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_h71_a_command_killed_by_signal_n_is_128_and_n(
    household: Begin, number: signal.Signals
) -> None:
    assert household(*shell(f"kill -{number} $$")).end().status == 128 + number


def test_it_reads_and_writes_as_if_nobody_stood_between(household: Begin) -> None:
    ended = household(*shell("echo out; echo err >&2; read x || echo no input")).end()
    assert (ended.out, ended.err) == ("out\nno input\n", "err\n")


def test_it_finds_its_term_in_the_environment(household: Begin, path: str) -> None:
    wanted = "PATH", "NAME", "NODE", "TOKEN"
    text = " ".join(f"$ZKELECT_{each}" for each in wanted)
    found_path, name, node, token = (
        household("--name", "a-1", *shell(f"echo {text}")).end().out.split()
    )
    assert (found_path, name) == (path, "a-1")
    assert re.search(r"__lock__\d{10}$", node)
    assert str(Token.parse(token)) == token


def test_it_finds_files_and_signals_as_our_caller_has_left_them(
    household: Begin, tmp_path: Path
) -> None:
    with (tmp_path / "given").open("w") as given:
        script = (
            f"echo kept >/proc/self/fd/{given.fileno()}; grep -E 'SigBlk|SigIgn' /proc/self/status"
        )
        ended = household(*shell(script), how={"pass_fds": [given.fileno()]}).end()
    assert (tmp_path / "given").read_text() == "kept\n"
    blocked, ignored = (int(word, 16) for word in ended.out.split()[1::2])
    assert (blocked, ignored & ~GLIBCS_OWN) == (0, 0)


def test_the_deadline_file_is_renewed_and_gone_at_the_end(household: Begin) -> None:
    run = household("--", *HEART)
    _, pid, _ = run.run.line().split()
    environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
    (file,) = [Path(each.partition("=")[2]) for each in environment if "DEADLINE_FILE" in each]
    deadlines: set[str] = set()
    while len(deadlines) < 3:
        deadlines.add(run.run.line().split()[2])
    run.run.signal(signal.SIGTERM)
    run.end()
    assert not file.parent.exists()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program of the documentation."""
    page = (Path(__file__).parents[2] / "docs" / "cli_run.md").read_text("utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (text,) = [block for block in blocks if block.startswith("#!")]
    path = tmp_path / "program"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_program_of_the_documentation_goes_on_while_the_lease_does(
    household: Begin, program: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("tick_time = 0.2\n")
    options = "--config", str(config), "--session-timeout", "4"
    run = household(*options, "--", str(program))
    pieces = {run.run.line() for _ in range(50)}  # longer than one lease
    assert [piece[:27] for piece in pieces] == ["a piece of work, under 0000"]
    run.run.signal(signal.SIGTERM)
    assert run.end().status == 128 + signal.SIGTERM


def test_the_program_of_the_documentation_ends_when_the_lease_is_not_renewed(
    program: Path, tmp_path: Path
) -> None:
    file = tmp_path / "deadline"
    file.write_text(f"{boottime() + 3.0:.2f}\n")
    env = {**os.environ, "ZKELECT_TOKEN": "t", "ZKELECT_DEADLINE_FILE": str(file)}
    ended = subprocess.run(
        [program], env=env, capture_output=True, text=True, timeout=WITHIN, check=True
    )
    assert boottime() < float(file.read_text())
    assert ended.stderr == ""
    assert ended.stdout.startswith("a piece of work, under t\n")


# --- not elected -------------------------------------------------------------------------------


def test_h71_who_does_not_wait_is_not_elected_behind_a_leader(
    household: Begin, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    leader = cast("a")
    leader.lead()
    before = operator.kazoo.exists(path).cversion
    ended = household("-n", *shell("echo never")).end()
    assert (ended.status, ended.out) == (75, "")
    assert "1 candidate ahead" in ended.err
    assert operator.kazoo.exists(path).cversion == before  # it has not even stood


def test_h71_who_waits_long_enough_in_vain_ends_with_75_or_what_was_asked_for(
    household: Begin, cast: Callable[..., Actor]
) -> None:
    cast("a").lead()
    assert household("-w", "0.3", *SLEEP).end().status == 75
    assert household("-w", "0.3", "--restart", *SLEEP).end().status == 75
    assert household("-w", "0", "-E", "3", *SLEEP).end().status == 3


def test_who_does_not_wait_leads_when_nobody_stands(household: Begin) -> None:
    assert household("-n", *shell("exit 4")).end().status == 4


# --- lost --------------------------------------------------------------------------------------


def test_h71_a_loss_is_70_though_the_command_ends_with_0(
    household: Begin, operator: Operator, path: str
) -> None:
    run = household(
        *shell("trap 'exit 0' TERM; echo up; for i in $(seq 6000); do sleep 0.01; done")
    )
    run.run.line()
    operator.delete(path, operator.nodes(path)[0])
    ended = run.end()
    assert ended.status == 70
    assert "lost (evicted)" in ended.err


def test_h71_a_voluntary_handover_is_a_loss_too(
    household: Begin, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    run = household(
        "--name",
        "old",
        *shell(
            "trap 'echo asked; exit 0' TERM; echo up; for i in $(seq 6000); do sleep 0.01; done"
        ),
    )
    run.run.line()
    heir = cast("new").queue()
    heir.election.switchover("new", timeout=20)
    ended = run.end()
    assert (ended.status, ended.out) == (70, "asked\n")
    assert "lost (switched-over)" in ended.err


def test_after_a_loss_it_stands_again_when_told_so(
    household: Begin, operator: Operator, path: str
) -> None:
    run = household("--restart", "--", *HEART)
    tokens = [run.run.line().split()[2]]
    operator.delete(path, operator.nodes(path)[0])
    while (words := run.run.line().split())[0] != "born":
        pass
    tokens.append(words[2])
    assert tokens == sorted(set(tokens))
    run.run.signal(signal.SIGTERM)
    assert run.end().status == 128 + signal.SIGTERM


# --- nothing to be had -------------------------------------------------------------------------


def test_h71_no_server_is_69(household: Begin) -> None:
    assert household("--timeout", "0.5", *SLEEP, hosts="127.0.0.1:1").end().status == 69


def test_h71_no_permission_is_77(household: Begin, operator: Operator, path: str) -> None:
    operator.kazoo.create(path, acl=[make_digest_acl("somebody", "else", all=True)])
    ended = household(*SLEEP).end()
    assert ended.status == 77
    assert "permission" in ended.err


def test_h71_what_plainly_cannot_run_is_told_before_anything_is_joined(
    household: Begin, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    nowhere = "127.0.0.1:1"
    for command, status in ("no-such-program", 127), (str(plain), 126), (str(tmp_path), 126):
        assert household("--", command, hosts=nowhere).end().status == status


def test_h71_what_turns_out_not_to_run_is_told_too(household: Begin, tmp_path: Path) -> None:
    for text, status in ("#!/no/such/interpreter\n", 127), ("no program", 126):
        program = tmp_path / "program"
        program.write_text(text)
        program.chmod(0o755)
        assert household("--", str(program)).end().status == status


@pytest.mark.parametrize(
    "wrong",
    [
        ("--grace", "5", *SLEEP),
        ("-w", "-1", *SLEEP),
        ("-w", "nan", *SLEEP),
        ("-E", "256", *SLEEP),
        ("-n", "-w", "3", *SLEEP),
        ("sleep", "600"),
        ("--",),
        ("--serve", "nowhere", *SLEEP),
        ("--name", "n" * 8193, *SLEEP),
    ],
    ids=lambda wrong: " ".join(wrong)[:20],
)
def test_h71_wrong_usage_is_64_and_starts_nothing(household: Begin, wrong: tuple[str, ...]) -> None:
    ended = household(*wrong, hosts="127.0.0.1:1").end()
    assert (ended.status, ended.out) == (64, "")


def test_a_signal_before_it_leads_ends_it(
    household: Begin, cast: Callable[..., Actor], operator: Operator, path: str
) -> None:
    cast("a").lead()
    for options in (), ("--restart",):
        run = household(*options, *SLEEP)
        until(lambda: len(operator.nodes(path)) == 2, "it waits")
        run.run.signal(signal.SIGINT)
        assert run.end().status == 128 + signal.SIGINT
        assert len(operator.nodes(path)) == 1


def test_a_signal_while_it_connects_ends_it(household: Begin, doomed: LocalEnsemble) -> None:
    doomed.servers[0].pause()
    run = household("--timeout", "30", *SLEEP, hosts=doomed.hosts)
    await_child = run.keeper  # signals are taken from soon after the keeper is there
    until(lambda: _threads(run.run.process.pid) > 1, "a thread takes signals")
    run.run.signal(signal.SIGTERM)
    assert run.end().status == 128 + signal.SIGTERM
    await_death(await_child)


def _threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
