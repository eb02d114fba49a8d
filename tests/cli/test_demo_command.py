"""The command: what it offers, refuses, says and returns; no server is started."""

from __future__ import annotations

import signal
from importlib import metadata
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from click.testing import CliRunner, Result

from zkelect.cli import main
from zkelect.cli.demo import command, installing
from zkelect.cli.demo.report import Report, audit
from zkelect.cli.signals import Interrupted, Interruption
from zkelect.testing import Distribution, InstallFailed, ServerFailed, ServerNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TYPED = (
    "apt-get update && "
    "apt-get install -y --no-install-recommends libzookeeper-java default-jre-headless"
)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main.command, arguments, prog_name="zkelect")


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Report]], None]:
    """Run this in place of the demo."""
    return lambda run: monkeypatch.setattr(command, "run", run)


def found(*problems: str) -> Report:
    return attrs.evolve(audit([], [], None), problems=problems)


def fail(error: BaseException) -> Callable[..., Report]:
    def run(*_: Any, **__: Any) -> Report:
        raise error

    return run


# --- what it offers -----------------------------------------------------------------------


def test_the_version_is_that_of_the_package() -> None:
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"zkelect {metadata.version('zkelect')}\n")


def test_the_demos_help_names_its_options_and_exit_statuses() -> None:
    result = invoke("demo", "--help")
    assert result.exit_code == 0
    for part in ("--install", "--servers [1|3]", "--json", "\n    0   ", "\n    69  ", "\n    130"):
        assert part in result.stdout


# --- what it refuses ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["demo", "--servers", "2"], "'2' is not one of '1', '3'"),
        (["demo", "now"], "unexpected extra argument"),
        (["demo", "--fast"], "No such option"),
        (["observe"], "No such command 'observe'"),
        (["--fast"], "No such option"),
    ],
)
def test_wrong_usage_is_told_with_the_status_of_sysexits(arguments: list[str], told: str) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (64, "")
    assert told in result.stderr


# --- what it returns ----------------------------------------------------------------------


def test_a_demo_as_promised_is_0(running: Callable[[Callable[..., Report]], None]) -> None:
    asked: list[dict[str, Any]] = []

    def run(screen: object, **settings: Any) -> Report:
        asked.append(settings)
        return found()

    running(run)
    assert invoke("demo", "--servers", "3").exit_code == 0
    assert invoke("demo", "--json").exit_code == 0
    assert asked[0]["servers"] == 3 and asked[0]["rest"] > 0
    assert asked[1]["servers"] == 1 and asked[1]["rest"] == 0


def test_a_demo_not_as_promised_is_1(running: Callable[[Callable[..., Report]], None]) -> None:
    running(lambda *_, **__: found("rows were lost"))
    assert invoke("demo").exit_code == 1
    result = invoke("demo", "--json")
    assert (result.exit_code, result.stderr) == (1, "zkelect: rows were lost\n")


def test_without_a_server_it_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOOKEEPER_HOME", "/nowhere")
    result = invoke("demo")
    assert (result.exit_code, result.stdout) == (69, "")
    assert "ZOOKEEPER_HOME=/nowhere: it has no lib/zookeeper-*.jar" in result.stderr
    assert f"\n    {TYPED}\n" in result.stderr
    assert "\n    zkelect demo --install\n" in result.stderr
    assert max(map(len, result.stderr.splitlines())) <= 4 + len(TYPED)


def test_a_server_that_does_not_start_is_69(
    running: Callable[[Callable[..., Report]], None], tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    log.write_text("Address already in use", "utf-8")
    running(fail(ServerFailed("127.0.0.1:1", "ended before it served", log)))
    result = invoke("demo")
    assert result.exit_code == 69
    assert f"127.0.0.1:1 ended before it served; the last lines of {log}:" in result.stderr
    assert "Address already in use" in result.stderr


# --- installing ---------------------------------------------------------------------------


def test_install_comes_before_the_demo_and_shows_how_it_goes(
    running: Callable[[Callable[..., Report]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def install(progress: Callable[[str], None]) -> None:
        progress("Unpacking zookeeper [all]")
        done.append("installed")

    def run(*_: Any, **__: Any) -> Report:
        done.append("run")
        return found()

    running(run)
    monkeypatch.setattr(installing, "install", install)
    result = invoke("demo", "--install")
    assert (result.exit_code, done) == (0, ["installed", "run"])
    assert (result.stdout, result.stderr) == ("", "Unpacking zookeeper [all]\n")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ServerNotFound({"install": "only root can run apt-get"}), TYPED),
        (InstallFailed("apt-get update", "exit status 100"), "apt-get update: exit status 100"),
    ],
)
def test_an_installation_that_fails_is_69(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(progress: Callable[[str], None]) -> Distribution:
        raise error

    monkeypatch.setattr(installing, "install", install)
    result = invoke("demo", "--install")
    assert result.exit_code == 69
    assert told in result.stderr


# --- signals ------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """After a signal the command ignores all others until its process has ended: ours goes on."""
    heeded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.getsignal(number) for number in heeded}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_demo_with_the_shells_status(
    number: signal.Signals, running: Callable[[Callable[..., Report]], None]
) -> None:
    def run(*_: Any, **__: Any) -> Report:
        try:
            signal.raise_signal(number)
            raise AssertionError("the signal was not heeded")
        finally:
            signal.raise_signal(number)  # the impatient second one, while all is stopped
            stopped.append(number)

    stopped: list[signal.Signals] = []
    running(run)
    result = invoke("demo")
    assert (result.exit_code, stopped) == (128 + number, [number])
    assert result.stderr.startswith(f"zkelect: {number.name}: ")
    assert signal.getsignal(number) is signal.SIG_IGN


def test_without_a_signal_all_is_left_as_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruption():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGHUP)
        interruption.check()
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_deferred_signal_is_raised_where_it_is_looked_for() -> None:
    reached = []

    def work(interruption: Interruption) -> None:
        with interruption.deferred():
            signal.raise_signal(signal.SIGINT)
            reached.append("behind the signal")
            interruption.check()
            reached.append("behind the check")

    with Interruption() as interruption, pytest.raises(Interrupted) as ended:
        work(interruption)
    assert (reached, ended.value.code) == (["behind the signal"], 130)


def test_a_deferred_signal_is_raised_at_the_end_of_the_block_at_the_latest() -> None:
    with (
        Interruption() as interruption,
        pytest.raises(Interrupted),
        interruption.deferred(),
    ):
        signal.raise_signal(signal.SIGINT)
