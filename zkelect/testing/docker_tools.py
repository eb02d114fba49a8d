"""The programs that break a server's network, run beside it: a container in its network.

The official image has neither iptables nor tc. So they come from another container, which
shares the server's network (``--network container:…``) and nothing else, and has the one
right that it takes, NET_ADMIN. Neither root on this machine nor a change of the server's
image is needed. Pumba, the chaos tool for Docker, does the same.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from zkelect.testing.docker_engine import translated
from zkelect.testing.docker_errors import EngineFailed
from zkelect.testing.netns import NetworkUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docker.models.containers import Container

    from zkelect.testing.docker_project import Project

__all__ = ["IDLE", "Toolbox", "dockerfile"]

IDLE: Final = {"entrypoint": ["sleep"], "command": ["infinity"], "user": "0"}
"""Options of a container that does nothing: others share its network."""

_PROGRAMS: Final = ("iptables-restore", "tc", "ss")
_LOOK: Final = " && ".join(f"command -v {program}" for program in _PROGRAMS)


class Toolbox:
    """Runs programs in the networks of an ensemble's servers."""

    def __init__(self, project: Project, networks: Sequence[Container], image: str) -> None:
        """Start nothing yet: most ensembles are never broken.

        :param networks: the containers whose networks are the servers'.
        :param image: an image that may have the programs.
        """
        self._project = project
        self._networks = networks
        self._image = image
        self._boxes: dict[int, Container] = {}

    def run(self, index: int, command: Sequence[str], *, text: str = "") -> str:
        """Run a program in a server's network; return what it printed.

        :param text: its standard input.
        :raises NetworkUnavailable: it failed, or there is none; what it printed is told.
        """
        shell = f"printf %s {shlex.quote(text)} | {shlex.join(command)}"
        status, output = self._execute(self._box(index), shell)
        if status != 0:
            raise NetworkUnavailable([f"{shlex.join(command)}: {output}"])
        return output

    # --- within ---------------------------------------------------------------------------

    def _box(self, index: int) -> Container:
        if index not in self._boxes:
            self._boxes[index] = self._open(index)
        return self._boxes[index]

    def _open(self, index: int) -> Container:
        self._project.engine.ensure_image(self._image)
        box = self._start(index)
        if self._execute(box, _LOOK)[0] == 0:
            return box
        with translated(f"remove {box.name}"):
            box.remove(v=True, force=True)
        self._image = self._build()
        return self._start(index)

    def _start(self, index: int) -> Container:
        return self._project.run(
            f"tools-{index + 1}",
            self._image,
            **IDLE,
            network_mode=f"container:{self._networks[index].id}",
            cap_add=["NET_ADMIN"],
        )

    def _build(self) -> str:
        try:
            return self._project.engine.build(dockerfile(self._image))
        except EngineFailed as failure:
            lacking = (
                f"image {self._image} lacks one of {', '.join(_PROGRAMS)}, and they could not be "
                f"added ({failure.problem}): name an image that has them, "
                "DockerEnsemble(tools_image=…)"
            )
            raise NetworkUnavailable([lacking]) from failure

    def _execute(self, box: Container, shell: str) -> tuple[int | None, str]:
        with translated(f"run a program in {box.name}"):
            done = box.exec_run(["sh", "-c", shell])
        assert isinstance(done.output, bytes)  # it is not streamed
        return done.exit_code, done.output.decode("utf-8", "replace").strip()


def dockerfile(image: str) -> str:
    """Return how to add the programs to an image made from Debian, Ubuntu or Alpine."""
    return f"""\
FROM {image}
USER root
RUN if command -v apk; then apk add --no-cache iproute2 iptables; else \\
    apt-get update && apt-get install -y --no-install-recommends iproute2 iptables && \\
    rm -rf /var/lib/apt/lists/*; fi
"""
