"""The frame of the command line: its help, how commands fail, what is shown of foreign text."""

from __future__ import annotations

import inspect
import json
import logging
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import pytest
from click.testing import CliRunner

import zkelect
from zkelect import errors
from zkelect.cli import commands, consent
from zkelect.cli.commands import SECTIONS, Entry, find
from zkelect.cli.consent import ask_consent
from zkelect.cli.escaping import printable
from zkelect.cli.exits import (
    INTERRUPTED,
    LOST,
    NO_PERMISSION,
    NOT_DONE,
    NOT_ELECTED,
    UNAVAILABLE,
    USAGE,
    exit_status,
)
from zkelect.cli.failures import tell, telling_failures
from zkelect.cli.formats import Format, formatted, write_json, write_rows
from zkelect.cli.logs import log_to_stderr
from zkelect.cli.main import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENTRIES: Final = [entry for section in SECTIONS.values() for entry in section]
each_command = pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
BIDI: Final = "\u202e\u2066"


def loaded(entry: Entry) -> click.Command:
    found = command.get_command(click.Context(command), entry.name)
    assert found is not None
    return found


def zkelect_process(
    *words: str, env: dict[str, str] | None = None, **how: Any
) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ZKELECT_")}
    return subprocess.run(
        [sys.executable, "-m", "zkelect.cli", *words],
        env={**kept, "XDG_CONFIG_HOME": "/nonexistent", **(env or {})},
        check=False,
        text=True,
        **{"capture_output": True, **how},
    )


# --- help ----------------------------------------------------------------------------------------


def test_sections_come_in_the_order_in_which_they_are_needed() -> None:
    order = ["Run", "Look", "Operate", "Check", "Try"]
    assert [*SECTIONS] == [title for title in order if title in SECTIONS]
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert find("no-such-command") is None


@each_command
def test_the_list_says_of_each_command_what_it_says_of_itself(entry: Entry) -> None:
    """The list is made without importing a command, so its lines are kept beside."""
    found = loaded(entry)
    assert inspect.cleandoc(found.help or "").partition("\n")[0] == entry.help
    assert found.name == entry.name


@each_command
def test_each_command_has_help_that_fits_a_terminal(entry: Entry) -> None:
    for option in ("-h", "--help"):
        result = CliRunner().invoke(command, [entry.name, option], env={"COLUMNS": "80"})
        assert result.exit_code == 0
        assert entry.help.partition(",")[0] in result.output
        assert not [line for line in result.output.splitlines() if len(line) > 80]


def leaves() -> Iterator[tuple[str, ...]]:
    for entry in ENTRIES:
        found = loaded(entry)
        if isinstance(found, click.Group):
            yield from ((entry.name, name) for name in found.commands)
        else:
            yield (entry.name,)


@pytest.mark.parametrize("words", [*leaves()], ids=" ".join)
def test_each_command_tells_its_exit_statuses(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(command, [*words, "--help"]).output
    assert shown.count("\n  Exit status") == 1


@each_command
def test_each_option_says_what_it_is_for(entry: Entry) -> None:
    options = [each for each in loaded(entry).params if isinstance(each, click.Option)]
    assert not [each.name for each in options if not each.help]


def test_the_help_lists_every_command_under_its_title() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.exit_code == 0
    for title, section in SECTIONS.items():
        part = result.output.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        listed = [line.split()[0] for line in part.splitlines() if line.startswith("  ")]
        assert [entry.name for entry in section] == [
            name for name in listed if name in {each.name for each in section}
        ]


def test_the_help_imports_nothing_that_it_does_not_need() -> None:
    program = (
        "import sys\nsys.argv = ['zkelect', '--help']\n"
        "from zkelect.cli import start\n"
        "try:\n    start()\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = done.stderr.split()
    assert "Try:" in done.stdout
    assert "zkelect.cli.main" in imported
    needless = {"kazoo", "rich", "asyncio", "sqlalchemy", "starlette", "zkelect.session"}
    assert not needless & set(imported)
    assert not {entry.module for entry in ENTRIES} & set(imported)


def test_the_version_is_told() -> None:
    result = CliRunner().invoke(command, ["--version"])
    assert result.exit_code == 0
    assert result.output.split()[-1].count(".") == 2


# --- exit statuses -------------------------------------------------------------------------------

STATUSES: Final[dict[str, int]] = {
    "InvalidArgument": USAGE,
    "MonkeyPatched": USAGE,
    "Lost": LOST,
    "LeadershipLost": LOST,
    "LeadershipSuspended": LOST,
    "NotElected": NOT_ELECTED,
    "PermissionDenied": NO_PERMISSION,
    "AuthenticationFailed": NO_PERMISSION,
    "Unreachable": UNAVAILABLE,
    "ConnectFailed": UNAVAILABLE,
    "TlsFailed": UNAVAILABLE,
    "ServerTooOld": UNAVAILABLE,
    "RequestFailed": UNAVAILABLE,
    "SequenceExhausted": UNAVAILABLE,
}
"""All others are refusals: by the election's state, or by a store."""


def kinds() -> list[type[zkelect.ZkelectError]]:
    return [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_each_error_has_its_exit_status(kind: type[zkelect.ZkelectError]) -> None:
    error = kind.__new__(kind)  # whatever it needs to be told
    assert exit_status(error) == STATUSES.get(kind.__name__, NOT_DONE)


def test_the_statuses_are_those_of_sysexits() -> None:
    assert (USAGE, UNAVAILABLE, LOST, NOT_ELECTED, NO_PERMISSION) == (64, 69, 70, 75, 77)
    assert set(STATUSES) <= set(errors.__all__)


@pytest.mark.parametrize(
    ("raised", "status", "told"),
    [
        (zkelect.InvalidArgument("path", "x", "another one"), 64, "zkelect: path='x': another one"),
        (zkelect.PermissionDenied("/a", "read", ("digest",)), 77, "permission to read"),
        (zkelect.NobodyLeads("/a"), 1, "zkelect: /a: nobody leads"),
        (click.UsageError("too much"), 64, "Error: too much"),
        (click.ClickException("no"), 1, "zkelect: no"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_command_raises_is_one_message_and_a_status(
    raised: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(click.exceptions.Exit) as ended, telling_failures():
        raise raised
    assert ended.value.exit_code == status
    shown = capsys.readouterr()
    assert shown.out == ""
    assert told in shown.err
    assert "Traceback" not in shown.err


def test_an_error_of_ours_is_not_hidden_as_a_failure() -> None:
    with pytest.raises(ZeroDivisionError), telling_failures():
        raise ZeroDivisionError


@pytest.mark.parametrize("words", [("nonsense",), ("--nonsense",), (), ("demo", "--servers", "2")])
def test_wrong_usage_is_64(words: tuple[str, ...]) -> None:
    done = zkelect_process(*words)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "Usage: " in done.stderr
    assert "Traceback" not in done.stderr


def test_control_characters_in_wrong_usage_are_not_passed_on() -> None:
    done = zkelect_process("\x1b[31mnonsense", "--", "\u202e")
    assert "\x1b" not in done.stderr
    assert "\u202e" not in done.stderr


@each_command
def test_a_command_that_does_not_know_where_says_how_to_tell_it(
    entry: Entry, tmp_path: Any
) -> None:
    """Of those that need ZooKeeper; nothing is begun."""
    if "hosts" not in {each.name for each in loaded(entry).params}:
        return
    arguments = ["/a", "--to", "b"] if entry.name == "switchover" else ["/a"]
    done = zkelect_process(entry.name, *arguments, env={"HOME": str(tmp_path)})
    assert done.returncode == USAGE
    assert "Traceback" not in done.stderr


# --- what is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("host-a", "host-a"),
        ("größe 候補 \N{PILE OF POO}", "größe 候補 \N{PILE OF POO}"),
        ("\N{MAN}\u200d\N{WOMAN}", "\N{MAN}\u200d\N{WOMAN}"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\tb\nc\r", "a\\tb\\nc\\r"),
        (f"a{BIDI}b", "a\\u202e\\u2066b"),
        ("\udcff", "\\udcff"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("\u200b\ufeff", "\\u200b\\ufeff"),
        ("", ""),
    ],
    ids=ascii,
)
def test_only_what_is_visible_is_shown_as_it_is(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_a_message_keeps_its_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    tell(f"first\x1b[2J\nsecond{BIDI}\r")
    assert capsys.readouterr().err == "zkelect: first\\x1b[2J\nsecond\\u202e\\u2066\\r\n"


def test_json_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"name": f"größe{BIDI}\n\x1b", "none": None, "odd": "\udcff"}
    write_json(value)
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.count("\n") == 1
    assert json.loads(out) == value


def test_rows_are_kept_apart_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows([("a\tb", None, 7), ("c\nd\\", True, "")])
    assert capsys.readouterr().out == "a\\tb\t\t7\nc\\nd\\\\\ttrue\t\n"


def test_rows_on_a_terminal_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody looks at what a program gets, and names are whatever others have chosen."""
    write_rows([(f"\x1b[2J{BIDI}", "\udcff", "größe")])
    assert capsys.readouterr().out == "\\x1b[2J\\u202e\\u2066\t\\udcff\tgröße\n"


@pytest.mark.parametrize("value", [*Format])
def test_the_output_option_takes_what_its_help_says(value: Format) -> None:
    @click.command()
    @formatted
    def show(output: Format) -> None:
        assert output is value
        click.echo(f"as {output}")

    assert CliRunner().invoke(show, ["-o", str(value)]).output == f"as {value}\n"
    assert "[table|json|tsv]" in CliRunner().invoke(show, ["--help"]).output
    assert "[default: table]" in CliRunner().invoke(show, ["--help"]).output


# --- where it is shown ---------------------------------------------------------------------------

SHOWS_A_NAME: Final = (
    "from zkelect.cli import start\nimport zkelect.cli.main, click\n"
    "@zkelect.cli.main.command.command('name')\n"
    "def name():\n    click.echo('host-gr\\xf6\\u5019')\n    zkelect.cli.failures.tell('\\u5019')\n"
    "zkelect.cli.main._Commands.get_command = lambda *_: name\n"
    "import sys\nsys.argv = ['zkelect', 'name']\nstart()\n"
)


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
    ],
    ids=["C", "latin-1", "ascii"],
)
def test_letters_that_a_locale_does_not_have_are_no_error(env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOWS_A_NAME],
        capture_output=True,
        check=False,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"host-gr")
    assert done.stderr.startswith(b"zkelect: ")
    assert b"Traceback" not in done.stderr


def test_a_reader_who_has_enough_is_no_error() -> None:
    """As in ``zkelect ... | head``: the pipe is closed before we write."""
    reader, writer = os.pipe()
    os.close(reader)
    done = zkelect_process("--help", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.stderr == ""


def test_a_disk_that_is_full_is_told() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123  # a device
        done = zkelect_process(
            "completion", "bash", capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == NOT_DONE
    assert done.stderr == "zkelect: the output could not be written: No space left on device\n"


def test_no_standard_output_at_all_is_no_error() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m zkelect.cli --help >&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


# --- consent -------------------------------------------------------------------------------------


def test_who_has_said_yes_is_not_asked() -> None:
    ask_consent("Really?", yes=True)


def test_where_nobody_can_be_asked_it_is_wrong_usage() -> None:
    program = "from zkelect.cli.consent import ask_consent\nask_consent('Really?', False)\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "UsageError: Really? Nobody can be asked here: say --yes." in done.stderr


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Sit at a terminal, and answer so."""

    class Terminal:
        def isatty(self) -> bool:
            return True

    class Console:
        stdin = Terminal()
        stderr = Terminal()

    def sit(answer: object) -> None:
        def confirm(_: str, *, err: bool) -> object:
            assert err, "the question does not go where the data go"
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(consent, "sys", Console)
        monkeypatch.setattr(click, "confirm", confirm)

    return sit


@pytest.mark.parametrize(("answer", "status"), [(False, NOT_DONE), (click.Abort(), INTERRUPTED)])
def test_a_no_and_ctrl_c_end_it(
    at_a_terminal: Callable[[object], None], answer: object, status: int
) -> None:
    at_a_terminal(answer)
    with pytest.raises(click.exceptions.Exit) as ended:
        ask_consent("Really?", yes=False)
    assert ended.value.exit_code == status


def test_a_yes_goes_on(at_a_terminal: Callable[[object], None]) -> None:
    at_a_terminal(True)
    ask_consent("Really?", yes=False)


# --- logs ----------------------------------------------------------------------------------------


@pytest.fixture
def loggers() -> Iterator[None]:
    """Leave logging as it was."""
    kept = [(log, log.level, log.handlers[:], log.propagate) for log in map(_log, _LOGGERS)]
    yield
    for log, level, handlers, propagate in kept:
        log.setLevel(level)
        log.handlers[:] = handlers
        log.propagate = propagate


_LOGGERS: Final = ("zkelect", "kazoo")
_log: Final = logging.getLogger


@pytest.mark.parametrize(
    ("verbose", "shown"),
    [
        (0, ["zkelect warns"]),
        (1, ["zkelect warns", "zkelect informs"]),
        (2, ["zkelect warns", "zkelect informs", "zkelect debugs", "kazoo warns", "kazoo debugs"]),
        (5, ["zkelect warns", "zkelect informs", "zkelect debugs", "kazoo warns", "kazoo debugs"]),
    ],
)
@pytest.mark.usefixtures("loggers")
def test_what_is_logged_goes_to_standard_error(
    verbose: int, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr(verbose)
    _log("zkelect.session").warning("zkelect warns")
    _log("zkelect").info("zkelect informs")
    _log("zkelect").debug("zkelect debugs")
    _log("kazoo.client").warning("kazoo warns")
    _log("kazoo.client").debug("kazoo debugs")
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert len(lines) == len(shown)
    assert all(line.endswith(end) for line, end in zip(lines, shown, strict=True))


@pytest.mark.usefixtures("loggers")
def test_a_name_cannot_make_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(0)
    _log("zkelect").warning("%s stands", "host-a\nzkelect: all is well\x1b[2J")
    assert capsys.readouterr().err == ("zkelect: host-a\\nzkelect: all is well\\x1b[2J stands\n")


def test_the_first_ctrl_c_has_the_status_of_a_signal() -> None:
    assert INTERRUPTED == 128 + signal.SIGINT
    assert commands.find("demo") in ENTRIES
