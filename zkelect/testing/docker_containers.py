"""Puts the containers of an ensemble together, as a pod for each server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkelect.testing.docker_configuration import CLIENT_PORT
from zkelect.testing.docker_engine import Engine
from zkelect.testing.docker_network import DockerNetwork
from zkelect.testing.docker_project import Project
from zkelect.testing.docker_server import DockerServer
from zkelect.testing.docker_tools import IDLE, Toolbox

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Sequence
    from pathlib import Path

    from docker.models.containers import Container

    from zkelect.testing.docker_configuration import Plan

__all__ = ["Containers"]


class Containers:
    """The servers of one ensemble, created but not running, and their network.

    The network of each server belongs to a container of its own, so that address, published
    port and faults are still there when the server comes back.

    :ivar servers: by index. :ivar network: whole.
    """

    def __init__(self, plan: Plan, directory: Path, opened: contextlib.ExitStack) -> None:
        """Create them; ``opened`` removes them.

        :param directory: for logs.
        :raises EngineNotFound: no engine answers.
        :raises ImageNotFound: the image is not there and cannot be pulled.
        """
        engine = Engine()
        engine.ensure_image(plan.image)
        project = Project(engine)
        opened.callback(project.remove)
        project.create_network()
        owners = [_own_network(project, plan, index) for index in range(plan.size)]
        addresses = [_address(owner, project) for owner in owners]
        toolbox = Toolbox(project, owners, plan.tools_image)
        self.network = DockerNetwork(owners, addresses, toolbox)
        opened.callback(self.network.close)
        self.servers: Sequence[DockerServer] = [
            DockerServer(
                container=project.create(
                    f"server-{index + 1}",
                    plan.image,
                    network_mode=f"container:{owner.id}",
                    environment=plan.environment(index, addresses),
                ),
                address=_published(owner, engine),
                log_path=directory / f"server-{index + 1}.log",
            )
            for index, owner in enumerate(owners)
        ]


def _own_network(project: Project, plan: Plan, index: int) -> Container:
    return project.run(
        f"network-{index + 1}",
        plan.image,
        **IDLE,
        network=project.name,
        ports=project.engine.ports(CLIENT_PORT),
    )


def _address(owner: Container, project: Project) -> str:
    return str(owner.attrs["NetworkSettings"]["Networks"][project.name]["IPAddress"])


def _published(owner: Container, engine: Engine) -> str:
    (binding, *_) = owner.attrs["NetworkSettings"]["Ports"][f"{CLIENT_PORT}/tcp"]
    return f"{engine.host}:{binding['HostPort']}"
