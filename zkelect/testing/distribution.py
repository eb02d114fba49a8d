"""Where this machine keeps ZooKeeper and Java, and what to type when it has none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from zkelect.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["INSTALL_COMMANDS", "Distribution", "ServerNotFound", "find_server"]

# The jars and a Java without its desktop half: 86 packages on a bare Debian 12. The package
# "zookeeper" adds scripts that are not needed here, and 140 packages for Java's windows.
INSTALL_COMMANDS: Final = (
    ("apt-get", "update"),
    (
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
        "libzookeeper-java",
        "default-jre-headless",
    ),
)

_DEBIAN_JARS: Final = Path("/usr/share/java")
_DEBIAN_JVMS: Final = Path("/usr/lib/jvm")

# Debian's zookeeper.jar names the jars it needs in its manifest, but for two: one to write
# the log, and one without which Netty, which serves TLS, does not load.
_DEBIAN_ADDITIONS: Final = ("slf4j-simple.jar", "netty-codec.jar")


class ServerNotFound(Unreachable):
    """This machine has no ZooKeeper server, or no Java to run it.

    :ivar looked: each place that was looked at, and what was wrong there.
    """

    def __init__(self, looked: Mapping[str, str]) -> None:
        self.looked: dict[str, str] = dict(looked)
        told = "; ".join(f"{place}: {problem}" for place, problem in looked.items())
        typed = " && ".join(" ".join(command) for command in INSTALL_COMMANDS)
        super().__init__(
            f"no ZooKeeper server on this machine ({told}). On Debian or Ubuntu, as root: "
            f"{typed} (zkelect demo --install does it). Elsewhere: unpack a release of "
            "ZooKeeper 3.5 or newer, set ZOOKEEPER_HOME to its folder, and install Java"
        )


@attrs.frozen(kw_only=True)
class Distribution:
    """A ZooKeeper server that can be run here.

    :ivar java: the Java program. :ivar class_path: what Java's ``-cp`` needs.
    :ivar origin: where it was found, for people.
    """

    java: Path
    class_path: tuple[str, ...]
    origin: str


def find_server(environ: Mapping[str, str] = os.environ) -> Distribution:
    """Find a ZooKeeper server: ``ZOOKEEPER_HOME`` first, then Debian's or Ubuntu's package.

    :param environ: ``ZOOKEEPER_HOME`` (an unpacked release), ``JAVA_HOME`` and ``PATH`` count.
    :raises ServerNotFound: there is none; or ``ZOOKEEPER_HOME`` is set, but to no release:
        a wrong setting is told, not passed over.
    """
    home = environ.get("ZOOKEEPER_HOME")
    origin, class_path = _from_package() if home is None else _from_release(Path(home))
    return Distribution(java=_find_java(environ), class_path=class_path, origin=origin)


def _from_release(home: Path) -> tuple[str, tuple[str, ...]]:
    origin = f"ZOOKEEPER_HOME={home}"
    if not any((home / "lib").glob("zookeeper*.jar")):
        raise ServerNotFound({origin: "it has no lib/zookeeper-*.jar"})
    return origin, (str(home.absolute() / "lib" / "*"),)


def _from_package() -> tuple[str, tuple[str, ...]]:
    jar = _DEBIAN_JARS / "zookeeper.jar"
    if not jar.exists():
        raise ServerNotFound({"ZOOKEEPER_HOME": "it is not set", str(jar): "there is no such file"})
    additions = (_DEBIAN_JARS / name for name in _DEBIAN_ADDITIONS)
    return str(jar), (str(jar), *(str(path) for path in additions if path.exists()))


def _find_java(environ: Mapping[str, str]) -> Path:
    for candidate in _java_candidates(environ):
        if os.access(candidate, os.X_OK):
            return candidate
    raise ServerNotFound(
        {"JAVA_HOME, PATH and /usr/lib/jvm": "the server is here, but no program java to run it"}
    )


def _java_candidates(environ: Mapping[str, str]) -> Sequence[Path]:
    home = environ.get("JAVA_HOME")
    on_path = shutil.which("java", path=environ.get("PATH"))
    return [
        *([Path(home) / "bin" / "java"] if home else []),
        *([Path(on_path)] if on_path else []),
        *sorted(_DEBIAN_JVMS.glob("*/bin/java")),
    ]
