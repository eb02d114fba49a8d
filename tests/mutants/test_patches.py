"""Every patch file is of the form, fits the code, and names tests that exist."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
from hazards.table import hazards_of, named_tests
from mutants.patches import FOLDER, ROOT, DoesNotApply, Patch, read_all

PATCHES = read_all()
every_patch = pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
SESSION = "zkelect/session/"


@every_patch
def test_a_patch_applies_and_what_comes_of_it_is_python(patch: Patch, tmp_path: Path) -> None:
    file = tmp_path / patch.place
    file.parent.mkdir(parents=True)
    shutil.copy(ROOT / patch.target, file)
    before = ast.dump(ast.parse(file.read_text("utf-8")))
    patch.apply(tmp_path)
    assert ast.dump(ast.parse(file.read_text("utf-8"))) != before


@every_patch
def test_a_patch_is_small(patch: Patch) -> None:
    """One idea: so it is plain what the test has noticed."""
    for hunk in patch.hunks:
        taken = [line for line in hunk.old if line not in hunk.new]
        put = [line for line in hunk.new if line not in hunk.old]
        assert len(taken) <= 4
        assert len(put) <= 3
    assert len(patch.hunks) == 1


def test_every_named_test_exists() -> None:
    known = set(named_tests("tests", "integration"))
    named = {test.partition("[")[0] for patch in PATCHES for test in patch.tests}
    assert named <= known, named - known


@every_patch
def test_the_level_is_that_of_the_tests(patch: Patch) -> None:
    needs_server = any(test.startswith("integration/") for test in patch.tests)
    assert patch.level == ("integration" if needs_server else "unit")


@every_patch
def test_a_hazard_is_named_by_a_test_that_fails(patch: Patch) -> None:
    assert patch.hazards == {case for test in patch.tests for case in hazards_of(test)}


def test_there_are_enough_of_them() -> None:
    assert len(PATCHES) >= 30
    assert sum(patch.target.startswith(SESSION) for patch in PATCHES) >= 12
    assert len({patch.title for patch in PATCHES}) == len(PATCHES)
    core = [patch for patch in PATCHES if patch.part == "core"]
    assert 2 * sum("exploration" in patch.also for patch in core) >= len(core)


def test_the_applier_refuses_what_is_not_there_or_there_twice(tmp_path: Path) -> None:
    patch = Patch.read(FOLDER / "fence-off.patch")
    with pytest.raises(DoesNotApply, match="there is no"):
        patch.apply(tmp_path)
    file = tmp_path / patch.place
    file.parent.mkdir(parents=True)
    source = (ROOT / patch.target).read_text("utf-8")
    file.write_text("\n".join(["", *patch.hunks[0].new]), "utf-8")
    with pytest.raises(DoesNotApply, match="0 places"):
        patch.apply(tmp_path)
    file.write_text(source + source, "utf-8")
    with pytest.raises(DoesNotApply, match="2 places"):
        patch.apply(tmp_path)
    file.write_text(f"# a line more\n{source}", "utf-8")
    patch.apply(tmp_path)  # what has only moved is found


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("title: x\ndanger: y\nlevel: unit", "test"),
        ("title: x\ndanger: y\ntest: z\nlevel: unit\nwhy: w", "why"),
        ("title: x\ndanger: y\ntest: z\nlevel: chaos", "level"),
    ],
)
def test_a_header_that_is_none_is_refused(header: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "x.patch"
    path.write_text(f"{header}\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "utf-8")
    with pytest.raises(ValueError, match=told):
        Patch.read(path)
