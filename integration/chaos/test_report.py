"""The figures and the table, from a forged history whose figures are known."""

from __future__ import annotations

import pytest

from chaos.checker import check
from chaos.figures import measure, percentile
from chaos.forgery import FIRST, event, judged
from chaos.report import markdown, table


def test_the_figures_of_the_forged_history() -> None:
    figures = measure(judged())
    assert (figures.elections, figures.forks, figures.seconds) == (2, 1, 16.6)
    assert dict(figures.faults) == {"hole": 1}
    assert dict(figures.ends) == {"resigned": 2}
    assert dict(figures.outcomes["s"]) == {"done": 4}
    assert figures.handovers == pytest.approx([2.42 - 1.52])  # last write, next claim
    assert (figures.failovers, figures.disowned) == ([], [])
    assert figures.healings == [0.0]


def test_a_zombie_that_still_tries_is_measured_from_its_successors_grant() -> None:
    late = [
        event(3.4, "c1.1", "asked", op="9", what="write", store="s", token=FIRST),
        event(3.5, "c1.1", "answered", op="9", outcome="fenced"),
    ]
    figures = measure(judged(*late))
    assert max(figures.zombies) == pytest.approx(3.4 - 2.2)
    assert dict(figures.stale) == {"the store": 1}


def test_a_term_that_an_operator_ended_is_counted_apart() -> None:
    order = event(1.8, "c1.1", "ordered", act="delete", token=FIRST)
    figures = measure(judged(order))
    assert dict(figures.acts) == {"delete": 1}
    assert figures.disowned == pytest.approx([0.2])


def test_a_recovery_is_the_ensembles_own_time_until_it_serves() -> None:
    assert measure(judged(event(3.7, "director", "mended"))).recoveries == pytest.approx([0.3])


def test_the_longest_time_without_a_leader_is_between_two_leaders() -> None:
    seen = [(-2.0, None), (1.0, "a"), (2.0, None), (3.5, "b"), (4.0, None), (4.2, "c"), (5.0, None)]
    events = [event(at, "observer", "seen", token=token) for at, token in seen]
    assert measure(judged(*events)).leaderless == pytest.approx(1.5)


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([3, 1, 2, 4], share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 3, 4, 4]


def test_the_table_tells_the_verdict_and_each_violation() -> None:
    history = judged(without=lambda one: one.kind == "row" and one["op"] == "6")
    told = table(check(history), measure(history))
    assert "✗ I5" in told
    assert "I5: s has 6 (done) 0 times" in told
    assert told.endswith("verdict: INVALID")


def test_the_table_tells_what_was_never_judged() -> None:
    history = judged(without=lambda one: one.kind == "woken")
    told = table(check(history), measure(history))
    assert "I10: there was nothing to judge" in told
    assert told.endswith("verdict: UNKNOWN")


def test_the_markdown_is_a_table_of_two_columns() -> None:
    history = judged()
    lines = markdown(check(history), measure(history), {"commit": "abc"}).splitlines()
    assert lines[:3] == ["| | |", "|---|---|", "| commit | abc |"]
    assert "| verdict | valid |" in lines
    assert all(line.count("|") == 3 for line in lines)
