"""Programs that the tests in containers need, from Debian's packages when we are root."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final

__all__ = ["ProgramMissing", "ensure"]

_APT: Final = ("apt-get", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3")
_PATH: Final = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


class ProgramMissing(Exception):
    """A program is not on this machine, and we cannot install it."""

    def __init__(self, program: str, package: str, problem: str) -> None:
        super().__init__(
            f"there is no program {program} on this machine ({problem}); as root, type: "
            f"apt-get update && apt-get install -y --no-install-recommends {package}"
        )


def ensure(program: str, package: str) -> str:
    """Return the path of a program, installing the package that brings it if we must.

    :raises ProgramMissing: it is not here, and we are not root or have no apt-get.
    :raises subprocess.CalledProcessError: apt-get failed; it has printed why.
    """
    if (found := shutil.which(program, path=_PATH)) is not None:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ProgramMissing(program, package, "only root, on Debian or Ubuntu, installs it here")
    for command in (["update"], ["install", "-y", "--no-install-recommends", *package.split()]):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([*_APT, *command], env=environment, stdin=subprocess.DEVNULL, check=True)
    if (found := shutil.which(program, path=_PATH)) is None:
        raise ProgramMissing(program, package, f"although {package} was installed")
    return found
