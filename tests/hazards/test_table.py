"""The table of cases: numbers are read from names, and nothing that is due is missing."""

from __future__ import annotations

import pytest
from hazards.table import Case, case_of, hazards_of, named_tests, read_cases, unknown


@pytest.mark.parametrize(
    ("test", "cases"),
    [
        ("tests/x.py::test_h08_an_evicted_leader", ["H08"]),
        ("tests/x.py::test_h05_h06_a_dead_link[1]", ["H05", "H06"]),
        ("tests/h07/test_h.py::test_a_lease_of_h10_seconds", []),
        ("tests/x.py::test_h100_x", []),
    ],
)
def test_a_test_is_named_after_its_cases(test: str, cases: list[str]) -> None:
    assert hazards_of(test) == cases


def test_no_test_is_named_after_a_case_that_is_none() -> None:
    assert unknown(list(named_tests("tests", "integration"))) == []


def test_every_case_that_is_due_is_shown_and_proven() -> None:
    assert {case.number: case.problem for case in read_cases() if case.problem} == {}


@pytest.mark.parametrize(
    ("due", "tests", "mutants", "controls", "problem"),
    [
        (False, (), (), (), None),
        (True, (), ("m",), (), "no test"),
        (True, ("t",), (), (), "nothing shows that its test can fail"),
        (True, ("t",), ("m",), (), None),
        (True, ("t",), (), ("c",), None),
    ],
)
def test_what_a_case_lacks_is_told(
    due: bool,
    tests: tuple[str, ...],
    mutants: tuple[str, ...],
    controls: tuple[str, ...],
    problem: str | None,
) -> None:
    case = Case(
        number="H01",
        what="x",
        part=1,
        due=due,
        tests=tests,
        mutants=mutants,
        controls=controls,
    )
    assert case.problem == problem


@pytest.mark.parametrize("closed", [(), (4,)])
def test_a_control_that_is_no_test_is_told(closed: tuple[int, ...]) -> None:
    """Or its case would stay proven by a test that was renamed, or is gone."""
    tests = ["tests/x.py::test_h62_x", "tests/x.py::test_control"]
    told = {"part": 4, "what": "x", "controls": tests[1:]}
    assert case_of("H62", told, tests, (), closed=closed).problem is None
    lacking = case_of("H62", told, tests[:1], (), closed=closed)
    assert lacking.problem == "no control is called tests/x.py::test_control"
