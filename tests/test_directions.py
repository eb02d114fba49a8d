"""import-linter holds each direction of setup.cfg: for every contract an import that breaks it."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.lint

# The contract, a module, and what it must not import.
BREACHES = [
    ("directions", "errors.py", "zkelect.token"),
    ("directions", "token.py", "zkelect.core.znodes"),
    ("directions", "core/znodes.py", "zkelect.session.wire"),
    ("directions", "session/wire.py", "zkelect.stores.fence"),
    ("directions", "session/wire.py", "zkelect.election"),
    ("directions", "stores/sqlite.py", "zkelect.session.wire"),
    ("directions", "election.py", "zkelect.testing"),
    ("directions", "testing/__init__.py", "zkelect.cli"),
    ("directions", "recipes/__init__.py", "zkelect.cli"),
    ("directions", "group.py", "zkelect.server"),
    ("directions", "server/pages.py", "zkelect.cli"),
    ("pure", "core/lease.py", "time"),
    ("pure", "core/lease.py", "random"),
    ("pure", "core/machine.py", "threading"),
    ("pure", "core/machine.py", "asyncio"),
    ("pure", "core/machine.py", "logging"),
    ("pure", "core/events.py", "kazoo.client"),
    ("pure", "stores/fence.py", "time"),
    ("pure", "token.py", "time"),
    ("kazoo", "testing/__init__.py", "kazoo.client"),
    ("kazoo", "__init__.py", "kazoo"),
    ("stores", "stores/sqlite.py", "zkelect.session.wire"),
    ("stores", "stores/memory.py", "zkelect.core.znodes"),
    ("siblings", "stores/memory.py", "zkelect.stores.sqlite"),
    ("protocol", "election.py", "zkelect.stores"),
    ("protocol", "election.py", "zkelect.stores.sqlite"),
    ("public", "recipes/__init__.py", "zkelect.core.znodes"),
    ("public", "recipes/__init__.py", "zkelect.stores.sqlite"),
]


def installed_package() -> Path:
    spec = find_spec("zkelect")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def lint_imports(contract: str, *, over: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["lint-imports", str(ROOT / "setup.cfg"), "--no-cache", "--contract", contract],
        cwd=over,
        env=os.environ | {"PYTHONPATH": str(over)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("contract", "module", "imported"), BREACHES)
def test_a_breach_of_a_contract_is_seen(
    tmp_path: Path, contract: str, module: str, imported: str
) -> None:
    shutil.copytree(installed_package(), tmp_path / "zkelect")
    with (tmp_path / "zkelect" / module).open("a", encoding="utf-8") as source:
        source.write(f"\nimport {imported}\n")
    done = lint_imports(contract, over=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout


def test_every_contract_has_a_breach_that_shows_it_at_work() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", "utf-8")
    prefix = "importlinter:contract:"
    contracts = {name.removeprefix(prefix) for name in config if name.startswith(prefix)}
    assert contracts == {contract for contract, _, _ in BREACHES}
