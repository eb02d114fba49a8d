"""The programs that the tests need, from Debian's packages: found, or installed when asked.

    python integration/servers/packages.py [PACKAGE …]

installs what is missing of these packages, of all that the stores' tests need when none is
named; tox does that first. The services that packages bring are not
started; one that was there before is left as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Missing", "install", "program"]

# Debian keeps servers out of the PATH of those who do not run them.
_FOLDERS: Final = ("/usr/sbin", "/usr/bin", "/usr/lib/postgresql/15/bin")
_PACKAGES: Final = {
    "postgres": "postgresql-15",
    "initdb": "postgresql-15",
    "pg_basebackup": "postgresql-client-15",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "pgbouncer": "pgbouncer",
    "redis-server": "redis-server",
    "setpriv": "util-linux",
    "ip": "iproute2",
    "iptables": "iptables",
    "curl": "curl",
    "fish": "fish",
    "haproxy": "haproxy",
    "less": "less",
    "tmux": "tmux",
    "zsh": "zsh",
}
_BY_NAME_ONLY: Final = frozenset({"curl", "fish", "haproxy", "less", "tmux", "zsh"})
"""What only the tests of the command line need."""
_APT: Final = ("apt-get", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3")
_POLICY: Final = Path("/usr/sbin/policy-rc.d")
_NO_SERVICE: Final = "#!/bin/sh\nexit 101\n"


class Missing(Exception):
    """A program is not on this machine; the message says what to type."""

    def __init__(self, programs: Sequence[str], problem: str = "") -> None:
        packages = " ".join(sorted({_PACKAGES[program] for program in programs}))
        why = f" ({problem})" if problem else ""
        super().__init__(
            f"not on this machine: {', '.join(programs)}{why}; as root, type\n"
            f"    apt-get update && apt-get install -y --no-install-recommends {packages}"
        )


def program(name: str) -> str:
    """Return the full path of a program.

    :raises Missing: this machine does not have it.
    """
    found = _find(name)
    if found is None:
        raise Missing([name])
    return found


def install(*packages: str) -> None:
    """Make sure that this machine has the programs of these packages; prints what it does.

    :param packages: by Debian's names; all that the stores' tests need when none is given.
    :raises Missing: some are missing, and we are not root, or there is no apt-get.
    :raises ValueError: a package that is not known here.
    """
    if unknown := set(packages) - set(_PACKAGES.values()):
        raise ValueError(f"not known here: {', '.join(sorted(unknown))}")
    asked = packages or set(_PACKAGES.values()) - _BY_NAME_ONLY
    wanted = [name for name, package in _PACKAGES.items() if package in asked]
    missing = [name for name in wanted if _find(name) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(missing, "only root, on Debian or Ubuntu, can install them here")
    lacking = sorted({_PACKAGES[name] for name in missing})
    with _services_kept_down():
        _run(*_APT, "update")
        _run(*_APT, "install", "-y", "--no-install-recommends", *lacking)
    if still := [name for name in missing if _find(name) is None]:
        raise Missing(still, f"although {', '.join(lacking)} was installed")


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.defpath, *_FOLDERS)))


@contextmanager
def _services_kept_down() -> Iterator[None]:
    """Have packages start no service: Debian Policy 9.3.3.1, ``invoke-rc.d`` asks this script."""
    if _POLICY.exists():  # the administrator's word stands
        yield
        return
    _POLICY.write_text(_NO_SERVICE, "ascii")
    try:
        _POLICY.chmod(0o755)
        yield
    finally:
        _POLICY.unlink()


def _run(*command: str) -> None:
    print("$", *command, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    install(*sys.argv[1:])
