"""Each finding: the facts of which it is made, and the nearest ones of which it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import pytest
from cli.patients import (
    HEALTHY,
    KAZOO_UUID,
    PATH,
    look_with,
    ours,
    serving,
    with_election,
    with_ensemble,
    with_host,
    with_session,
)

from zkelect.cli.doctor import facts as facts_module
from zkelect.cli.doctor.diagnosis import diagnose, worst
from zkelect.cli.doctor.facts import Facts, Spread
from zkelect.cli.doctor.finding import SEVERITIES, Code, Finding, Severity
from zkelect.cli.doctor.timing import timeout_needed
from zkelect.core.lease import pace_of, patience_of, steady_lease
from zkelect.core.orphans import Orphan, find_orphans
from zkelect.core.pause import Pause
from zkelect.core.znodes import LAST_SEQUENCE, WORN_SEQUENCE, Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

LEADER: Final = serving("zk1:2181", "leader")
TWO: Final = (LEADER, serving("zk2:2181"))
DOWN: Final = serving("zk3:2181", problem="Connection refused", connect=None, version=None)
DEAF: Final = serving("zk3:2181", problem="it closes the connection", version=None)
QUEUE: Final = look_with(ours(1), ours(2))
FIRST, SECOND = QUEUE.roll.entries
TERM_OF_A_DEAD: Final = look_with(ours(0)).term
BUFFER: Final = 0xFFFFF

FOUND: Final[list[tuple[Code, Facts]]] = [
    (Code.NO_SESSION, with_session(granted=None, problem="no session with zk1:2181")),
    (Code.CREDENTIALS_REFUSED, with_session(granted=None, problem="refused", denied=True)),
    (Code.CHROOT_MISSING, with_ensemble(*TWO, serving("z"), chroot="/a/b", chroot_exists=False)),
    (Code.SERVER_DOWN, with_ensemble(*TWO, DOWN)),
    (Code.SERVER_NOT_SERVING, with_ensemble(*TWO, DEAF)),
    (Code.SEVERAL_ENSEMBLES, with_ensemble(*TWO, serving("zk3:2181", "standalone"))),
    (Code.SEVERAL_ENSEMBLES, with_ensemble(*TWO, serving("zk3:2181", "leader"))),
    (Code.NO_SPARE_SERVER, with_ensemble(attrs.evolve(LEADER, synced=1), TWO[1], DOWN)),
    (Code.NO_SPARE_SERVER, with_ensemble(attrs.evolve(LEADER, synced=None), TWO[1], DOWN)),
    (Code.SINGLE_SERVER, with_ensemble(serving("z", "standalone"), voters=None)),
    (Code.SINGLE_SERVER, with_ensemble(serving("z", "leader", synced=0))),
    (Code.EVEN_VOTERS, with_ensemble(LEADER, *map(serving, ("b", "c", "d")))),
    (Code.HOSTS_INCOMPLETE, with_ensemble(*TWO, voters=3)),
    (Code.MIXED_VERSIONS, with_ensemble(*TWO, serving("zk3:2181", version="3.9.1"))),
    (Code.UNEQUAL_LIMITS, with_ensemble(*TWO, serving("zk3:2181", most=60.0))),
    (Code.UNEQUAL_LIMITS, with_ensemble(*TWO, serving("zk3:2181", least=5.0))),
    (Code.UNEQUAL_TICK, with_ensemble(*TWO, serving("zk3:2181", tick=1.0))),
    (Code.LEAST_BELOW_TWO_TICKS, with_ensemble(*(serving(n, least=3.9) for n in "abc"))),
    (Code.WORDS_REFUSED, with_ensemble(*TWO, serving("zk3:2181", silent=("conf",)))),
    (Code.OTHER_TIMEOUT, with_session(asked=12.0)),
    (Code.TIMEOUT_TOO_SMALL, with_session(granted=0.8, tick=None)),
    (Code.TICK_TOO_SMALL, with_session(tick=1.99)),
    (Code.TICK_NOT_GIVEN, with_session(tick=None)),
    (
        Code.TICK_TOO_SMALL,
        attrs.evolve(
            with_session(tick=1.5),
            ensemble=with_ensemble(*TWO, serving("zk3:2181", tick=1.0)).ensemble,
        ),
    ),
    (Code.COMMITS_SLOW, with_session(commits=Spread(median=0.1, worst=0.7, count=20))),
    (Code.COMMITS_TOO_SLOW, with_session(commits=Spread(median=0.1, worst=2.01, count=20))),
    (Code.PAUSES_LONG, with_host(pause=steady_lease(10.0, 2.0) - 2.5)),
    (Code.PAUSES_TOO_LONG, with_host(pause=steady_lease(10.0, 2.0))),
    (Code.HOST_SLEEPS, with_host(slept=0.1)),
    (Code.SLEEP_UNSEEN, with_host(slept=None)),
    (Code.CLOCK_OFF, with_host(ahead=1.02)),
    (Code.CLOCK_OFF, with_host(ahead=-1.02)),
    (Code.NO_PERMISSION, with_election(QUEUE, now=None, denied=((PATH, "read"),))),
    (Code.WORLD_WRITABLE, with_election(QUEUE, acls={PATH: ("world:anyone:d",)})),
    (Code.WORLD_WRITABLE, with_election(QUEUE, acls={f"{PATH}.zkelect": ("world:anyone:rw",)})),
    (Code.NEVER_STOOD, with_election(look_with(), exists=False, recorded=False)),
    (Code.NOBODY_STANDS, with_election(look_with())),
    (Code.NO_HEIR, with_election(look_with(ours(1)))),
    (Code.PAUSED, with_election(QUEUE, pause=Pause(by="ada@host-a", why="disk"))),
    (Code.NOT_IN_OFFICE, with_election(look_with(ours(1), ours(2), first_in_office=False))),
    (Code.NOT_IN_OFFICE, with_election(look_with(ours(1), ours(2), term=TERM_OF_A_DEAD))),
    (Code.LEADER_GONE, with_election(attrs.evolve(QUEUE, owners={FIRST: 99, SECOND: 12}))),
    (Code.ORPHAN, with_election(attrs.evolve(QUEUE, owners={FIRST: 11, SECOND: 0}))),
    (Code.ORPHAN, with_election(attrs.evolve(QUEUE, owners={FIRST: 0, SECOND: 11}))),
    (Code.SECOND_CANDIDATE, with_election(attrs.evolve(QUEUE, owners={FIRST: 11, SECOND: 11}))),
    (Code.RECORD_DAMAGED, with_election(QUEUE, damaged=True)),
    (Code.RECORD_MISSING, with_election(QUEUE, recorded=False)),
    (
        Code.MIXED_DIALECTS,
        with_election(look_with(ours(1), "zkelect-00000000000280008000000000000002-0000000002")),
    ),
    (
        Code.FOREIGN_CANDIDATES,
        with_election(look_with(ours(1), f"{KAZOO_UUID}__lock__0000000002")),
    ),
    (Code.FOREIGN_NODES, with_election(look_with(ours(1), ours(2), "config"))),
    (Code.COUNTER_WORN, with_election(QUEUE, next_sequence=WORN_SEQUENCE)),
    (Code.COUNTER_EXHAUSTED, with_election(QUEUE, next_sequence=LAST_SEQUENCE + 1)),
    (Code.COUNTER_EXHAUSTED, with_election(look_with(ours(1), ours(2, LAST_SEQUENCE + 1)))),
    (Code.ROLL_LARGE, with_election(attrs.evolve(QUEUE, size=BUFFER // 2 + 1))),
    (Code.ROLL_TOO_LARGE, with_election(attrs.evolve(QUEUE, size=BUFFER + 1))),
    (
        Code.PAGE_LARGE,
        with_election(QUEUE, sizes={f"{PATH}.zkelect/history": BUFFER // 2 + 1}),
    ),
]

NOT_FOUND: Final[list[tuple[str, Facts]]] = [
    ("all is well", HEALTHY),
    ("no election was asked for", attrs.evolve(HEALTHY, election=None)),
    ("the host was not watched", attrs.evolve(HEALTHY, host=None)),
    ("five voters", with_ensemble(attrs.evolve(LEADER, synced=4), *map(serving, "bcde"))),
    ("an observer is named, too", with_ensemble(*TWO, *map(serving, "cd"), voters=3)),
    ("a server alone names no voters, but it is one", with_ensemble(*TWO, DOWN, voters=None)),
    ("the chroot is there", with_ensemble(*TWO, serving("c"), chroot="/a", chroot_exists=True)),
    ("two ticks exactly", with_ensemble(*(serving(n, least=4.0) for n in "abc"))),
    ("no server tells its tick", with_ensemble(*(serving(n, tick=None) for n in "abc"))),
    ("the tick is told larger than it is", with_session(tick=3.0)),
    (
        "commits at the pace of probes",
        with_session(commits=Spread(median=0.1, worst=pace_of(10.0), count=20)),
    ),
    ("a pause that leaves a quarter", with_host(pause=steady_lease(10.0, 2.0) - 2.6)),
    ("it slept for less than shows", with_host(slept=0.09)),
    ("clocks off by less than is known", with_host(ahead=3.0, doubt=2.5)),
    ("the clocks were not compared", with_host(ahead=None)),
    ("anybody may read", with_election(QUEUE, acls={PATH: ("world:anyone:r", "sasl:a:cdrwa")})),
    (
        "an observer's session may be anywhere",
        attrs.evolve(
            with_election(attrs.evolve(QUEUE, owners={FIRST: 99, SECOND: 12})),
            ensemble=with_ensemble(
                *TWO, serving("c"), serving("d", "observer", sessions=None), voters=3
            ).ensemble,
        ),
    ),
    (
        "who is not connected was not first before",
        with_election(
            attrs.evolve(QUEUE, owners={FIRST: 99, SECOND: 12}), before=look_with(ours(0), ours(1))
        ),
    ),
    (
        "it took office meanwhile",
        with_election(QUEUE, before=look_with(ours(1), ours(2), first_in_office=False)),
    ),
    (
        "it is about to, for another has just left",
        with_election(
            look_with(ours(1), ours(2), first_in_office=False), before=look_with(ours(0), ours(1))
        ),
    ),
    (
        "a second candidate for a moment",
        with_election(attrs.evolve(QUEUE, owners={FIRST: 11, SECOND: 11}), before=QUEUE),
    ),
    ("the last number", with_election(QUEUE, next_sequence=WORN_SEQUENCE - 1)),
    ("half the buffer", with_election(attrs.evolve(QUEUE, size=BUFFER // 2))),
]


def codes(facts: Facts) -> list[Code]:
    return [finding.code for finding in diagnose(facts)]


@pytest.mark.parametrize(("code", "facts"), FOUND, ids=[str(code) for code, _ in FOUND])
def test_what_is_wrong_is_found(code: Code, facts: Facts) -> None:
    assert code in codes(facts)


def test_each_finding_has_facts_of_which_it_is_made() -> None:
    assert {code for code, _ in FOUND} == {*Code} == {*SEVERITIES}


@pytest.mark.parametrize(("why", "facts"), NOT_FOUND, ids=[why for why, _ in NOT_FOUND])
def test_what_is_right_is_not_found(why: str, facts: Facts) -> None:
    down = Code.SERVER_DOWN if "alone" in why else None
    assert [code for code in codes(facts) if code is not down] == []


@pytest.mark.parametrize(("_", "facts"), FOUND, ids=[str(code) for code, _ in FOUND])
def test_each_finding_says_what_and_what_to_do(_: Code, facts: Facts) -> None:
    for finding in diagnose(facts):
        assert finding.what
        assert finding.advice[0].isupper()


def test_commits_as_slow_as_a_dead_link_are_worse_than_slow_ones() -> None:
    at_patience = Spread(median=0.1, worst=patience_of(10.0), count=20)
    assert Code.COMMITS_SLOW in codes(with_session(commits=at_patience))
    assert Code.COMMITS_TOO_SLOW not in codes(with_session(commits=at_patience))


def test_with_no_session_at_all_only_the_servers_are_judged() -> None:
    refused = attrs.evolve(
        with_session(granted=None, tick=None, problem="no session", reads=None, commits=None),
        ensemble=with_ensemble(DOWN, voters=None).ensemble,
        host=None,
        election=None,
    )
    assert codes(refused) == [Code.NO_SESSION, Code.SERVER_DOWN]


def test_the_worst_come_first_and_the_worst_one_is_the_verdict() -> None:
    facts = attrs.evolve(
        with_election(look_with(ours(1)), damaged=True), ensemble=with_ensemble(*TWO, DOWN).ensemble
    )
    severities = [finding.severity for finding in diagnose(facts)]
    assert severities == sorted(severities, reverse=True)
    assert worst(diagnose(facts)) is Severity.CRITICAL
    assert worst(()) is Severity.NOTE
    assert [int(each) for each in Severity] == [0, 1, 2], "as monitoring plugins have it"


def the_one(code: Code, facts: Facts) -> Finding:
    (finding,) = [each for each in diagnose(facts) if each.code is code]
    return finding


def test_the_values_are_told() -> None:
    pauses = the_one(Code.PAUSES_LONG, with_host(pause=5.0))
    assert "5.000 s" in pauses.what
    assert f"session timeout of {timeout_needed(with_host(pause=5.0)):g} s" in pauses.what
    limits = the_one(Code.UNEQUAL_LIMITS, with_ensemble(*TWO, serving("zk3:2181", most=60.0)))
    assert "zk1:2181 4 to 40 s" in limits.what
    assert "zk3:2181 4 to 60 s" in limits.what
    denied = the_one(Code.NO_PERMISSION, with_election(QUEUE, denied=((PATH, "read"),)))
    assert (denied.where, "read" in denied.what, "digest" in denied.what) == (PATH, True, True)


def test_a_missing_chroot_is_made_level_by_level() -> None:
    facts = with_ensemble(DOWN, LEADER, chroot="/a/b", chroot_exists=False, voters=3)
    advice = the_one(Code.CHROOT_MISSING, facts).advice
    assert "zkCli.sh -server zk1:2181 create /a && zkCli.sh -server zk1:2181 create /a/b" in advice


def test_what_to_do_about_a_dead_leader_can_be_copied() -> None:
    gone = with_election(attrs.evolve(QUEUE, owners={FIRST: 99, SECOND: 12}))
    advice = the_one(Code.LEADER_GONE, gone).advice
    assert advice.endswith(f": zkelect evict {PATH} {FIRST.node}")


def test_all_that_anybody_may_change_is_one_finding() -> None:
    pages = {PATH: ("world:anyone:cdrwa",), f"{PATH}.zkelect": ("world:anyone:rw",)}
    opened = the_one(Code.WORLD_WRITABLE, with_election(QUEUE, acls=pages))
    assert f"{PATH} (cdrwa), {PATH}.zkelect (rw)" in opened.what


def test_who_comes_as_nobody_is_told_so() -> None:
    facts = attrs.evolve(
        with_election(QUEUE, now=None, denied=((PATH, "read"),)),
        session=attrs.evolve(HEALTHY.session, schemes=()),
    )
    assert "nobody (no credentials are configured)" in the_one(Code.NO_PERMISSION, facts).what


@pytest.mark.parametrize("pause", [0.0, 0.5, 5.0, 60.0])
@pytest.mark.parametrize("commit", [0.001, 0.2, 3.0])
def test_the_timeout_needed_is_the_smallest_that_leaves_room(pause: float, commit: float) -> None:
    """A quarter of it is left after the pause and four commits; one tenth less leaves less."""
    times = Spread(median=commit, worst=commit, count=20)
    facts = attrs.evolve(with_host(pause=pause), session=with_session(commits=times).session)
    needed = timeout_needed(facts)

    def fits(timeout: float) -> bool:
        left = steady_lease(timeout, 2.0) - pause - 4 * commit
        return left >= timeout / 4

    assert fits(needed)
    assert commit <= patience_of(needed)
    assert not fits(round(needed - 0.1, 1))


def test_ten_thousand_left_over_are_one_finding_and_judged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look is searched a few times, whatever their number."""
    searches = []

    def find(owners: Mapping[Entry, int]) -> dict[Entry, Orphan]:
        searches.append(len(owners))
        return find_orphans(owners)

    monkeypatch.setattr(facts_module, "find_orphans", find)
    crowd = look_with(*(ours(number) for number in range(1, 101)))
    left = attrs.evolve(crowd, owners=dict.fromkeys(crowd.roll.entries, 11))
    finding = the_one(Code.SECOND_CANDIDATE, with_election(left))
    assert "as 98 others" in finding.what
    assert finding.where == f"{PATH}/{ours(2)}"
    assert len(searches) < 10


def test_of_many_that_are_not_ephemeral_the_first_is_named() -> None:
    crowd = look_with(*(ours(number) for number in range(1, 6)))
    stuck = attrs.evolve(crowd, owners=dict.fromkeys(crowd.roll.entries, 0))
    finding = the_one(Code.ORPHAN, with_election(stuck))
    assert (finding.where, "as 4 others" in finding.what) == (f"{PATH}/{ours(1)}", True)
