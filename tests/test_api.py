"""The public API: tests/typing/api.py uses all of it, and all of it has types."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import zkelect
from zkelect import server, stores, testing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

PROGRAMS: Final = Path(__file__).parent / "typing" / "api.py"
TREE: Final = ast.parse(PROGRAMS.read_text("utf-8"))
FACES: Final = (zkelect.Election, zkelect.AsyncElection)
USED: Final = (*FACES, zkelect.ElectionGroup)
MODULES: Final = {"zkelect": zkelect, "server": server, "stores": stores, "testing": testing}


# --- the programs of a user ----------------------------------------------------------------------


def attributes_of(module: str) -> set[str]:
    """Return the names that the programs take from a module."""
    return {
        node.attr
        for node in ast.walk(TREE)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == module
    }


def called_methods() -> set[str]:
    return {node.attr for node in ast.walk(TREE) if isinstance(node, ast.Attribute)}


def given_arguments() -> set[str]:
    return {node.arg for node in ast.walk(TREE) if isinstance(node, ast.keyword) and node.arg}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_used_as_users_do(module: str) -> None:
    public = set(MODULES[module].__all__) - MODULES.keys()
    assert not public - attributes_of(module)


@pytest.mark.parametrize("face", USED)
def test_every_method_of_an_election_is_used(face: type) -> None:
    assert not {name for name in dir(face) if not name.startswith("_")} - called_methods()


@pytest.mark.parametrize("function", [*USED, zkelect.connect])
def test_every_argument_is_given(function: Callable[..., object]) -> None:
    options = inspect.signature(function).parameters.values()
    names = {option.name for option in options if option.kind is option.KEYWORD_ONLY}
    assert names
    assert not names - given_arguments()


def test_the_async_face_takes_what_the_blocking_one_takes() -> None:
    blocking, on_asyncio = (inspect.signature(face).parameters for face in FACES)
    assert list(on_asyncio) == list(blocking)
    assert [each.default for each in on_asyncio.values()] == [
        each.default for each in blocking.values()
    ]


def test_aconnect_takes_what_connect_takes() -> None:
    blocking, on_asyncio = map(inspect.signature, (zkelect.connect, zkelect.aconnect))
    assert list(on_asyncio.parameters.values()) == list(blocking.parameters.values())


# --- types ---------------------------------------------------------------------------------------


def homes() -> Iterator[str]:
    """Say where each public class and function is defined, as pyright names it."""
    for module in MODULES.values():
        for name in set(module.__all__) - MODULES.keys():
            yield home_of(module, name)


def home_of(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    return f"{getattr(value, '__module__', module.__name__)}.{name}"


def pyright(cwd: Path, *arguments: str) -> str:
    """Run it far from the sources: it takes the folder of a pyproject.toml above for its root.

    It knows what the first python on PATH has installed.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    command = [sys.executable, "-m", "pyright", *arguments]
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout or done.stderr


@pytest.mark.types
@pytest.mark.timeout(600)
def test_pyright_reads_the_programs_as_mypy_does(tmp_path: Path) -> None:
    assert pyright(tmp_path, str(PROGRAMS)).strip() == "0 errors, 0 warnings, 0 informations"


@pytest.mark.types
@pytest.mark.timeout(600)
def test_pyright_knows_the_type_of_all_that_is_public(tmp_path: Path) -> None:
    public = tuple(homes())
    verify = ("--verifytypes", "zkelect", "--ignoreexternal", "--outputjson")
    own = [
        symbol
        for symbol in json.loads(pyright(tmp_path, *verify))["typeCompleteness"]["symbols"]
        if any(f"{symbol['name']}.".startswith(f"{home}.") for home in public)
    ]
    assert len(own) > len(public)
    unknown = [each for each in own if not each["isTypeKnown"] or each["isTypeAmbiguous"]]
    assert not [each["name"] for each in unknown]
