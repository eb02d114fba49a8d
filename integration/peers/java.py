"""Curator and ZooKeeper's own recipes, from Debian's packages, and Java to run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["JavaMissing", "Program", "install"]

_SOURCE: Final = Path(__file__).with_name("Program.java")
_JARS: Final = tuple(
    f"/usr/share/java/{name}.jar"
    for name in (
        # Their manifests name the jars that they need in turn.
        "curator-recipes",
        "zookeeper-recipes-election",
        "zookeeper-recipes-lock",
        "slf4j-nop",
    )
)
_PACKAGES: Final = ("libcurator-recipes-java", "default-jdk-headless")
_APT: Final = ("apt-get", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3")
# A small and quick machine, one of several beside the server.
_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m")


class JavaMissing(Exception):
    """This machine lacks a Java compiler, or the libraries; the message says what to type."""

    def __init__(self, missing: list[str], problem: str = "") -> None:
        super().__init__(
            f"not on this machine: {', '.join(missing)}{problem}; as root, on Debian, type: "
            f"apt-get update && apt-get install -y --no-install-recommends {' '.join(_PACKAGES)}"
        )


class Program:
    """The compiled Program.java.

    :param directory: where the classes go.
    :raises JavaMissing: this machine cannot compile it.
    """

    def __init__(self, directory: Path) -> None:
        if missing := _find_missing():
            raise JavaMissing(missing)
        self._class_path = ":".join((str(directory), *_JARS))
        compiler = shutil.which("javac") or ""
        subprocess.run(
            [compiler, "-d", str(directory), "-cp", self._class_path, str(_SOURCE)], check=True
        )

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs it."""
        java = shutil.which("java") or ""
        return [java, *_OPTIONS, "-cp", self._class_path, "Program", *arguments]


def install() -> None:
    """Install what is missing; prints what apt-get prints.

    :raises JavaMissing: we are not root, or have no apt-get.
    """
    missing = _find_missing()
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise JavaMissing(missing, " (only root, on Debian or Ubuntu, installs them here)")
    for command in (["update"], ["install", "-y", "--no-install-recommends", *_PACKAGES]):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([*_APT, *command], env=environment, stdin=subprocess.DEVNULL, check=True)
    if still := _find_missing():
        raise JavaMissing(still, f" (although {' '.join(_PACKAGES)} were installed)")


def _find_missing() -> list[str]:
    programs = [name for name in ("java", "javac") if shutil.which(name) is None]
    return [*programs, *(jar for jar in _JARS if not Path(jar).exists())]
