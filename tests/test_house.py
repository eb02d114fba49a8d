"""The rules of the house that no tool checks: names, sizes, and kazoo in one place."""

from __future__ import annotations

import ast
import importlib
import inspect
import statistics
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ROOT = Path(__file__).resolve().parent.parent
SESSION = ROOT / "zkelect" / "session"
MODULES = sorted((*(ROOT / "zkelect").rglob("*.py"), *(ROOT / "recipes").rglob("*.py")))
LONGEST_MODULE = 300
DOCUMENTED = {"_exit", "_replace"}
"""Of os and of a named tuple: public in spite of their names."""

every_module = pytest.mark.parametrize(
    "module", MODULES, ids=[str(module.relative_to(ROOT)) for module in MODULES]
)


# --- reading the sources -------------------------------------------------------------------


def parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text("utf-8"), str(module))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private_attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node


def is_own(attribute: ast.Attribute, classes: Collection[str] = ()) -> bool:
    """Of self, or of a class of the same module."""
    owner = attribute.value
    return isinstance(owner, ast.Name) and owner.id in {"self", "cls", *classes}


def defined_classes(tree: ast.AST) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def defined_names(tree: ast.AST) -> Iterator[str]:
    """Names that a module makes: its functions, classes, variables, and what it sets on self."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) if is_own(node):
                yield name


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)


def reflected_names(tree: ast.AST) -> Iterator[str]:
    """Names reached by a string: getattr(client, "_session")."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_, ast.Constant(str(attribute)), *_]) if (
                name in {"getattr", "setattr", "hasattr", "delattr"}
            ):
                yield attribute


def docstring_lines(tree: ast.Module) -> set[int]:
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def code_lines(module: Path) -> int:
    """Lines that are neither blank, comment nor docstring."""
    documentation = docstring_lines(parsed(module))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in documentation
        for number, line in enumerate(module.read_text("utf-8").splitlines(), start=1)
    )


def function_lengths(tree: ast.Module) -> Iterator[int]:
    documentation = docstring_lines(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            yield len(set(body) - documentation)


# --- kazoo: in one place, by its public names ----------------------------------------------


@every_module
def test_only_the_session_imports_kazoo(module: Path) -> None:
    kazoo = [name for name in imported_modules(parsed(module)) if name.split(".")[0] == "kazoo"]
    assert not kazoo or module.is_relative_to(SESSION)
    assert not [name for name in kazoo if any(map(is_private, name.split(".")))]


@every_module
def test_a_private_name_is_used_only_where_it_is_made(module: Path) -> None:
    """Also inherited ones: self._x of a kazoo base class is kazoo's, not ours."""
    tree = parsed(module)
    names, classes = set(defined_names(tree)), defined_classes(tree)
    foreign = [
        f"{module.name}:{attribute.lineno}: {ast.unparse(attribute)}"
        for attribute in private_attributes(tree)
        if attribute.attr not in names | DOCUMENTED
        or (module.is_relative_to(SESSION) and not is_own(attribute, classes))
    ]
    assert not foreign
    assert not [name for name in reflected_names(tree) if is_private(name)]


def kazoo_heirs() -> Iterator[tuple[type, type]]:
    """Each class of zkelect.session that inherits from kazoo, with each kazoo base."""
    for module in sorted(SESSION.glob("*.py")):
        name = f"zkelect.session.{module.stem}".removesuffix(".__init__")
        for heir in vars(importlib.import_module(name)).values():
            if isinstance(heir, type) and heir.__module__ == name:
                bases = (base for base in heir.__mro__ if base.__module__.startswith("kazoo."))
                yield from ((heir, base) for base in bases)


def test_no_heir_of_a_kazoo_class_hides_one_of_its_private_names() -> None:
    def private_names(owner: type) -> set[str]:
        tree = ast.parse(inspect.getsource(owner))
        return {attribute.attr for attribute in private_attributes(tree)}

    clashes = {
        (heir.__name__, base.__name__, name)
        for heir, base in kazoo_heirs()
        for name in private_names(heir) & private_names(base)
    }
    assert not clashes


# --- docstrings of what is public ----------------------------------------------------------


def public_objects() -> Iterator[tuple[str, object]]:
    """What a user may call: the names in __all__ of the packages, and their public methods."""
    for package in ("zkelect", "zkelect.server", "zkelect.stores", "zkelect.testing"):
        module = importlib.import_module(package)
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isclass(public) or inspect.isfunction(public):
                yield f"{package}.{name}", public
            if inspect.isclass(public):
                yield from (
                    (f"{package}.{name}.{method}", member)
                    for method, member in vars(public).items()
                    if not method.startswith("_")
                    and isinstance(member, FunctionType | property | classmethod | staticmethod)
                )


def test_what_is_public_has_a_docstring() -> None:
    assert not [name for name, public in public_objects() if not (public.__doc__ or "").strip()]


# --- names and sizes -----------------------------------------------------------------------


@every_module
def test_a_module_is_named_after_its_one_idea(module: Path) -> None:
    assert module.stem not in {"utils", "util", "helpers", "common", "manager", "base", "misc"}


@every_module
def test_a_module_is_short_enough_to_read(module: Path) -> None:
    assert code_lines(module) <= LONGEST_MODULE


def test_print_the_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    lengths = [length for module in MODULES for length in function_lengths(parsed(module))]
    lines = {module.relative_to(ROOT): code_lines(module) for module in MODULES}
    longest = max(lines, key=lambda module: lines[module])
    with capsys.disabled():
        print(
            f"\n{len(lines)} modules, {sum(lines.values())} lines of code, "
            f"the longest {longest} with {lines[longest]}; {len(lengths)} functions, "
            f"median {statistics.median(lengths):g} lines, longest {max(lengths)}"
        )
    assert lengths
