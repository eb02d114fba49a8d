"""A MariaDB server that has what the primary has not is refused, and left as it is (H82).

There is no server: what the two say is given, and what ours is told is noted.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from zkelect.recipes.clock import now
from zkelect.recipes.mariadb import following
from zkelect.recipes.mariadb.gtid import Gtid
from zkelect.recipes.mariadb.history import Promotion
from zkelect.recipes.mariadb.place import Place
from zkelect.recipes.mariadb.state import State
from zkelect.recipes.resource import NeedsRebuild, NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = Place(socket="here.sock", data_directory="data", user="agent", replication_user="repl")
FIRST, SECOND = Promotion(10, 1, "a" * 16), Promotion(20, 2, "b" * 16)
OURS = State(
    server=1,
    domain=0,
    writable=False,
    end=Gtid.parse("0-1-20"),
    strangers=(),
    promotions=(FIRST,),
    follows=None,
    receiving="No",
    applying=False,
    received=None,
    fault=0,
    told="",
)
THEIRS = attrs.evolve(OURS, server=2, end=Gtid.parse("0-2-29"), promotions=(FIRST, SECOND))


class Client:
    """A connection that notes what is said; a server that is told to follow does."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.said: list[str] = []

    def run(self, statement: str, *values: object) -> None:
        self.said.append(f"{' '.join(statement.split()[:3])} {values[0] if values else ''}".strip())
        if statement == "START SLAVE":
            self.state = attrs.evolve(self.state, receiving="Yes", applying=True)


def join(monkeypatch: pytest.MonkeyPatch, ours: State) -> list[str]:
    """Have ours join; return what it was told, also when it is refused."""
    client = Client(ours)

    @contextmanager
    def connect(*_: object) -> Iterator[Client]:
        yield client

    monkeypatch.setattr(following, "connect", connect)
    monkeypatch.setattr(following, "look", lambda asked, _: asked.state)
    monkeypatch.setattr(following, "read_remote", lambda *_: THEIRS)
    following.join(PLACE, "there:3306", now() + 30.0)
    return client.said


def test_h82_one_whose_transactions_the_primary_has_follows_from_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, *_, where, whom, last = join(monkeypatch, OURS)
    assert (first, last) == ("STOP SLAVE", "START SLAVE")
    assert (where, whom) == ("SET GLOBAL gtid_slave_pos 0-1-20", "CHANGE MASTER TO there")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"end": Gtid.parse("0-1-21")}, id="one transaction too many"),
        pytest.param(
            {"end": Gtid.parse("0-1-25"), "promotions": (FIRST, Promotion(20, 1, "c" * 16))},
            id="promoted at the same place",
        ),
        pytest.param(
            {"end": Gtid.parse("0-1-35"), "promotions": (FIRST, SECOND)}, id="more than the primary"
        ),
        pytest.param({"end": Gtid.parse("0-7-15")}, id="written by nobody who was the primary"),
        pytest.param({"strangers": (Gtid.parse("9-1-1"),)}, id="of another domain"),
    ],
)
def test_h82_one_that_has_what_the_primary_has_not_is_refused_and_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    monkeypatch.setattr(following, "_attach", lambda *_: pytest.fail("it goes on"))
    with pytest.raises(NeedsRebuild, match="copy the primary anew"):
        join(monkeypatch, attrs.evolve(OURS, **changes))


@pytest.mark.parametrize("fault", [1236, 1950, 1062, 1032])
def test_h82_one_that_turns_out_to_be_apart_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    """Error numbers by which MariaDB says that the rows, or the transactions, are not the same."""
    apart = attrs.evolve(OURS, fault=fault, told="Duplicate entry")
    monkeypatch.setattr(Client, "run", lambda *_: None)
    with pytest.raises(NeedsRebuild, match=f"not the primary's .{fault}: Duplicate entry"):
        join(monkeypatch, apart)


def test_one_that_is_not_let_in_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server goes on trying, as when the primary does not answer yet."""
    apart = attrs.evolve(
        OURS, applying=True, receiving="Connecting", fault=1045, told="Access denied for 'repl'"
    )
    monkeypatch.setattr(Client, "run", lambda *_: None)
    monkeypatch.setattr(following, "_STEP", 0.1)
    with pytest.raises(NotNow, match="applies that: 1045: Access denied for 'repl'"):
        join(monkeypatch, apart)
