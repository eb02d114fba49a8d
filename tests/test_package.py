"""What is promised outside: README, dependencies, the wheel, and types over all of it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


# --- README --------------------------------------------------------------------------------


def fenced_blocks(language: str, page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)


def test_ci_runs_the_second_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8").rstrip("\n").splitlines()
    assert script[-1] == fenced_blocks("sh")[1]


def test_every_file_that_the_readme_links_to_exists() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", readme)
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert targets
    assert not missing


# --- the package ---------------------------------------------------------------------------


def test_the_base_install_is_kazoo_and_attrs() -> None:
    required = metadata.requires("zkelect") or []
    base = {re.split(r"[^\w-]", line)[0] for line in required if "extra ==" not in line}
    assert base == {"attrs", "kazoo"}


@pytest.mark.parametrize(("absent", "asked"), [("click", "--help"), ("rich", "demo")])
def test_without_its_extra_the_command_says_what_to_install(absent: str, asked: str) -> None:
    program = (
        f"import sys; sys.modules[{absent!r}] = None; sys.argv[1:] = [{asked!r}]; "
        "from zkelect.cli import start; start()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    told = "zkelect: the command line needs its extra: pip install 'zkelect[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (64, "", told)


# --- types ---------------------------------------------------------------------------------


def source_modules() -> set[str]:
    """Where each source file of this checkout belongs in the wheel."""
    modules = {path.relative_to(ROOT) for path in (ROOT / "zkelect").rglob("*.py")}
    recipes = {"zkelect" / path.relative_to(ROOT) for path in (ROOT / "recipes").rglob("*.py")}
    return set(map(str, modules | recipes))


def mypy(*arguments: str | Path, cwd: Path) -> str:
    once = ("--config-file", ROOT / "setup.cfg", "--cache-dir", cwd.parent / "mypy_cache")
    command = [sys.executable, "-m", "mypy", *once, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.types
@pytest.mark.timeout(600)
def test_mypy_reads_every_module_that_the_wheel_ships(tmp_path: Path) -> None:
    shipped = {
        str(file)
        for file in metadata.files("zkelect") or []
        if file.suffix == ".py" and file.parts[0] == "zkelect"
    }
    assert shipped == source_modules()
    assert f"no issues found in {len(shipped)} source files" in mypy("-p", "zkelect", cwd=tmp_path)


@pytest.mark.types
@pytest.mark.timeout(600)
def test_the_examples_of_the_readme_are_true_to_the_types(tmp_path: Path) -> None:
    """One after the other they are one program: the imports are in the first."""
    examples = fenced_blocks("python")
    assert len(examples) == 2
    (tmp_path / "example.py").write_text("\n".join(examples), "utf-8")
    mypy("example.py", cwd=tmp_path)


@pytest.mark.types
@pytest.mark.timeout(600)
def test_the_ways_to_call_it_are_true_to_the_types(tmp_path: Path) -> None:
    """One after the other they are one program, too; integration/test_calling.py runs it."""
    (tmp_path / "ways.py").write_text(
        "\n".join(fenced_blocks("python", "docs/calling.md")), "utf-8"
    )
    mypy("ways.py", cwd=tmp_path)


@pytest.mark.types
@pytest.mark.timeout(600)
def test_the_tests_in_the_documentation_are_true_to_the_types(tmp_path: Path) -> None:
    """Each is a file of its own; integration/test_kit.py runs them."""
    for number, example in enumerate(fenced_blocks("python", "docs/testing.md")):
        (tmp_path / f"test_{number}.py").write_text(example, "utf-8")
    mypy(".", cwd=tmp_path)
