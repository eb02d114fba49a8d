"""One term of the command, as the elector follows it: what it orders, and what it makes of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from zkelect.cli.run.deadline_file import DeadlineFile
from zkelect.cli.run.keeper.kernel import boottime
from zkelect.cli.run.keeper.messages import (
    Cause,
    Dead,
    End,
    Ending,
    Hold,
    Message,
    Pass,
    Refused,
    Start,
    Started,
)
from zkelect.cli.run.keeping import KeeperLost, KeeperProcess
from zkelect.cli.run.program import NotFound, NotStarted
from zkelect.cli.run.signal_watch import Caught
from zkelect.cli.run.term import TermOfCommand
from zkelect.core.events import Reason
from zkelect.session.leadership import Leadership

LONG = 600.0


class Office:
    """A leadership that ends, or is renewed, when the test says so."""

    token, path, node, name = "token", "/elections/e", "node", "name"

    def __init__(self) -> None:
        self.deadline = boottime() + LONG
        self.reason: Reason | None = None

    def end(self, reason: Reason) -> None:
        self.reason = reason


class Script:
    """A keeper of which the test says what it tells: messages, or what to do before the next."""

    def __init__(self, *told: Message | Callable[[], object]) -> None:
        self.orders: list[Message] = []
        self.taken_over = 0
        self.killed = 0
        self._told = iter(told)

    def send(self, order: Message) -> bool:
        self.orders.append(order)
        return True

    def wait(self, timeout: float) -> Message | None:
        told = next(self._told, None)
        if told is None:
            raise KeeperLost("the script is over")
        if callable(told):
            told()
            return None
        return told

    def wake(self) -> None:
        pass

    def kill_tree(self) -> tuple[int, ...]:
        self.killed += 1
        return ()

    def take_over(self, complain: Callable[[tuple[int, ...]], None]) -> None:
        self.taken_over += 1


@pytest.fixture
def file() -> Iterator[DeadlineFile]:
    with DeadlineFile() as made:
        yield made


@pytest.fixture
def office() -> Office:
    return Office()


Make = Callable[[Script], TermOfCommand]


@pytest.fixture
def make(file: DeadlineFile, office: Office) -> Make:
    def term(keeper: Script) -> TermOfCommand:
        return TermOfCommand(
            cast("Leadership", office),
            cast("KeeperProcess", keeper),
            file,
            command=["job", "with space"],
            grace=1.0,
            look_every=0.01,
        )

    return term


def nothing() -> None:
    """A look without news."""


# --- while it runs -----------------------------------------------------------------------------


def test_it_is_started_with_its_term_and_its_deadline(
    make: Make, office: Office, file: DeadlineFile
) -> None:
    deadline = office.deadline
    keeper = Script(Started(1), Ending(Cause.EXITED, 3), Dead())
    outcome = make(keeper).follow()
    environment = {
        "ZKELECT_TOKEN": "token",
        "ZKELECT_PATH": "/elections/e",
        "ZKELECT_NODE": "node",
        "ZKELECT_NAME": "name",
        "ZKELECT_DEADLINE_FILE": str(file.path),
    }
    assert keeper.orders == [Start(environment, deadline, 1.0)]
    assert (outcome.status, outcome.lost) == (3, None)
    assert file.path.read_text() == "0.00\n"


def test_each_renewal_is_passed_on_and_written_down(
    make: Make, office: Office, file: DeadlineFile
) -> None:
    seen = []

    def renew() -> None:
        seen.append(float(file.path.read_text()))
        office.deadline += 1.0

    first = office.deadline
    keeper = Script(Started(1), renew, nothing, renew, nothing, Ending(Cause.EXITED), Dead())
    make(keeper).follow()
    assert keeper.orders[1:] == [Hold(first + 1.0), Hold(first + 2.0)]
    assert all(0 <= first + number - at < 0.02 for number, at in enumerate(seen))


def test_a_signal_is_passed_on(make: Make) -> None:
    keeper = Script()
    make(keeper).pass_on(Caught(signal.SIGTERM, typed=True))
    assert keeper.orders == [Pass(15, typed=True)]


def test_it_serves_from_its_start_until_its_end_begins(make: Make, office: Office) -> None:
    served = []

    def look() -> None:
        served.append(term.serving)

    keeper = Script(look, Started(1), look, Ending(Cause.LATE), look, Dead())
    term = make(keeper)
    term.follow()
    assert served == [False, True, False]


def test_it_does_not_serve_when_the_keeper_must_have_asked_it_to_end(
    make: Make, office: Office
) -> None:
    office.deadline = boottime() + 1.0  # less than grace and killing take
    served = []
    term = make(Script(Started(1), lambda: served.append(term.serving)))
    with pytest.raises(KeeperLost):
        term.follow()
    assert served == [False]


# --- losses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", Reason)
def test_a_loss_is_ordered_once_and_at_once_where_no_instant_is_left(
    make: Make, office: Office, reason: Reason, file: DeadlineFile
) -> None:
    seen = []

    def lose() -> None:
        office.reason = reason

    def look() -> None:
        seen.append((term.serving, file.path.read_text()))

    keeper = Script(Started(1), lose, look, nothing, Ending(Cause.ORDERED), Dead())
    term = make(keeper)
    outcome = term.follow()
    at_once = reason in (Reason.LAPSED, Reason.MACHINE_SUSPENDED)
    assert keeper.orders[1:] == [End(at_once)]
    assert outcome.lost == reason
    assert seen == [(False, "0.00\n")]


def test_h71_one_that_ends_well_after_the_loss_is_lost_all_the_same(
    make: Make, office: Office
) -> None:
    keeper = Script(Started(1), lambda: office.end(Reason.EVICTED), Ending(Cause.EXITED, 0), Dead())
    assert make(keeper).follow().lost == Reason.EVICTED


def test_a_lease_that_was_not_renewed_in_time_is_over_though_it_is_renewed_later(
    make: Make, office: Office
) -> None:
    def renew() -> None:
        office.deadline += 5.0

    keeper = Script(Started(1), Ending(Cause.LATE), renew, nothing, Dead())
    assert make(keeper).follow().lost == Reason.LAPSED
    assert office.reason == Reason.LAPSED
    assert len(keeper.orders) == 1  # no Hold: what was asked to end is ending


def test_a_leadership_that_is_over_before_it_begins_starts_nothing_that_lives(
    make: Make, office: Office
) -> None:
    office.deadline, office.reason = float("-inf"), Reason.EVICTED
    keeper = Script(Ending(Cause.LATE), Dead())
    assert make(keeper).follow().lost == Reason.EVICTED
    start = keeper.orders[0]
    assert isinstance(start, Start) and start.deadline == 0.0


# --- what fails --------------------------------------------------------------------------------


def test_h70_the_keeper_lost_is_replaced_before_the_term_is_left(make: Make) -> None:
    keeper = Script(Started(1))
    with pytest.raises(KeeperLost):
        make(keeper).follow()
    assert keeper.taken_over == 1


def test_one_that_tells_that_all_are_dead_is_not_replaced(make: Make) -> None:
    keeper = Script(Started(1), Ending(Cause.EXITED), Dead())
    make(keeper).follow()
    assert keeper.taken_over == 0


def test_h72_after_the_deadline_the_elector_kills_too(make: Make, office: Office) -> None:
    office.deadline = boottime()
    keeper = Script(Started(1), nothing, Ending(Cause.LATE), Dead())
    make(keeper).follow()
    assert keeper.killed == 1  # not again once all are dead


def test_before_the_deadline_it_does_not(make: Make) -> None:
    keeper = Script(Started(1), nothing, nothing, Ending(Cause.EXITED), Dead())
    make(keeper).follow()
    assert keeper.killed == 0


@pytest.mark.parametrize(("number", "kind"), [(2, NotFound), (13, NotStarted)])
def test_a_command_that_cannot_be_executed_is_told(
    make: Make, number: int, kind: type[Exception]
) -> None:
    keeper = Script(Refused(number), Ending(Cause.EXITED, 127), Dead())
    with pytest.raises(kind, match="job: "):
        make(keeper).follow()


def test_a_disk_that_is_full_ends_no_leadership(
    make: Make, file: DeadlineFile, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    keeper = Script(Started(1), Ending(Cause.EXITED, 4), Dead())
    assert make(keeper).follow().status == 4
    assert capsys.readouterr().err.count("No space left on device") == 1  # told once


def test_the_deadline_is_rounded_down(file: DeadlineFile) -> None:
    for deadline, text in (12.3499, "12.34\n"), (0.0, "0.00\n"), (7.0, "7.00\n"):
        file.write(deadline)
        assert file.path.read_text() == text


def test_it_is_shown_as_it_would_be_typed(make: Make) -> None:
    assert str(make(Script())) == "job 'with space'"
