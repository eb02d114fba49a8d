"""An image of ZooKeeper made of Debian's packages, for where no registry can be reached."""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docker.errors import ImageNotFound
from image.programs import ensure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from docker import DockerClient

__all__ = ["build"]

_RELEASE: Final = "bookworm"
# Not the package zookeeper: its scripts ask for Java's windows, 140 packages more.
_PACKAGES: Final = ("libzookeeper-java", "openjdk-17-jre-headless", "iproute2", "iptables")
_ENTRYPOINT: Final = Path(__file__).with_name("docker-entrypoint.sh")
_LABEL: Final = "zkelect.tests"
# What the packages were made from is no use in a container, and a third of the whole.
_LEFT_OUT: Final = ("./var/cache/apt/archives/*.deb", "./var/lib/apt/lists/*", "./usr/share/doc/*")
_log: Final = logging.getLogger(__name__)


def build(client: DockerClient) -> str:
    """Build the image, about a minute, unless the engine has it; return its name.

    :raises ProgramMissing: debootstrap is not here and cannot be installed.
    :raises subprocess.CalledProcessError: debootstrap failed; it has printed why.
    """
    name = f"zkelect-tests-zookeeper:{_fingerprint()}"
    try:
        client.images.get(name)
    except ImageNotFound:
        _log.info("building %s", name)
        with _unpacked() as root, _packed(root) as stream:
            _load(client, stream, name)
    return name


def _fingerprint() -> str:
    recipe = (_RELEASE, *_PACKAGES, *_LEFT_OUT, _ENTRYPOINT.read_text("utf-8"))
    return hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:12]


@contextmanager
def _unpacked() -> Iterator[Path]:
    """Lend a directory with the packages in it, and the entry point."""
    debootstrap = ensure("debootstrap", "debootstrap")
    with tempfile.TemporaryDirectory(prefix="zkelect-image-", ignore_cleanup_errors=True) as made:
        root = Path(made)
        packages = f"--include={','.join(_PACKAGES)}"
        subprocess.run(
            [debootstrap, "--variant=minbase", packages, _RELEASE, str(root)], check=True
        )
        shutil.copyfile(_ENTRYPOINT, root / _ENTRYPOINT.name)
        (root / _ENTRYPOINT.name).chmod(0o755)
        yield root


@contextmanager
def _packed(root: Path) -> Iterator[IO[bytes]]:
    left_out = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
    command = ["tar", "-C", str(root), *left_out, "-c", "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as tar:
        assert tar.stdout is not None
        yield tar.stdout
    if tar.returncode != 0:
        raise subprocess.CalledProcessError(tar.returncode, command)


def _load(client: DockerClient, stream: IO[bytes], name: str) -> None:
    repository, _, tag = name.partition(":")
    client.api.import_image_from_stream(
        stream,
        repository=repository,
        tag=tag,
        changes=[f'ENTRYPOINT ["/{_ENTRYPOINT.name}"]', f'LABEL {_LABEL}=""'],
    )
    client.images.get(name)
