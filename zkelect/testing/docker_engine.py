"""The Docker engine, by its SDK. What it raises comes out as an error of ours.

The one place that imports the SDK, which is an extra: only ``docker.py`` imports this.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import docker
from docker.errors import DockerException, NotFound
from requests.exceptions import RequestException

from zkelect.testing.docker_errors import EngineFailed, EngineNotFound, ImageNotFound, Removed
from zkelect.testing.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker.models.containers import Container
    from docker.models.networks import Network

__all__ = ["ENSEMBLE_LABEL", "TOOLS_LABEL", "Engine", "published_at", "translated"]

ENSEMBLE_LABEL: Final = "zkelect.ensemble"
TOOLS_LABEL: Final = "zkelect.tools"

_ANSWER_WITHIN: Final = 120  # seconds; a busy engine takes its time to unpack an image
_DEFAULT_SOCKET: Final = "unix:///var/run/docker.sock"
_log: Final = logging.getLogger(__name__)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise Removed where the SDK says that something is gone, EngineFailed for the rest."""
    try:
        yield
    except NotFound as error:
        raise Removed(doing, _told(error)) from error
    except (DockerException, RequestException) as error:
        raise EngineFailed(doing, _told(error)) from error


def published_at(engine: str) -> tuple[str, str]:
    """Return where clients reach published ports, and the address to publish them at.

    :param engine: the URL by which the SDK asks it.
    :raises EngineNotFound: it is asked over ssh, which carries no published port.
    """
    url = urlsplit(engine)
    if url.netloc == "ssh":
        raise EngineNotFound(
            "the engine is asked over ssh, and the servers' ports are out of reach on its "
            "machine; run this program there, or set DOCKER_HOST to tcp://…"
        )
    if url.scheme == "http+docker" or url.hostname in {None, "localhost", LOOPBACK}:
        return LOOPBACK, LOOPBACK
    return str(url.hostname), "0.0.0.0"  # noqa: S104 - we are not on that machine


class Engine:
    """The engine that ``DOCKER_HOST`` names, or this machine's."""

    def __init__(self) -> None:
        """Connect.

        :raises EngineNotFound: no engine answers.
        """
        address = os.environ.get("DOCKER_HOST", "")
        try:
            self._client = docker.from_env(timeout=_ANSWER_WITHIN)
        except (DockerException, RequestException) as error:
            raise EngineNotFound(
                f"no engine answers at {address or _DEFAULT_SOCKET} ({_told(error)}). Start one "
                "(systemctl start docker), or set DOCKER_HOST to another; where permission is "
                "denied, be root or in the group docker"
            ) from error
        self.host, self._publish_at = published_at(self._client.api.base_url)

    def close(self) -> None:
        """Close the connections to the engine."""
        self._client.close()

    # --- images ---------------------------------------------------------------------------

    def ensure_image(self, name: str) -> None:
        """Pull an image that is not there yet.

        :raises ImageNotFound: it could not be pulled.
        """
        with translated(f"look for image {name}"):
            try:
                self._client.images.get(name)
            except NotFound:
                self._pull(name)

    def build(self, dockerfile: str) -> str:
        """Build an image, or find the one built from the same text; return its name."""
        name = f"zkelect-tools:{hashlib.sha256(dockerfile.encode()).hexdigest()[:12]}"
        with translated("build an image with iptables, tc and ss"):
            try:
                self._client.images.get(name)
            except NotFound:
                self._build(dockerfile, name)
        return name

    def _build(self, dockerfile: str, name: str) -> None:
        _log.info("building image %s:\n%s", name, dockerfile)
        self._client.images.build(
            fileobj=io.BytesIO(dockerfile.encode()),
            tag=name,
            network_mode="host",  # where names are resolved, whatever the firewall
            forcerm=True,
            labels={TOOLS_LABEL: ""},
        )

    def _pull(self, name: str) -> None:
        _log.info("pulling image %s", name)
        try:
            self._client.images.pull(name)
        except DockerException as error:
            raise ImageNotFound(name, _told(error)) from error

    # --- what an ensemble is made of ------------------------------------------------------

    def create_network(self, ensemble: str) -> None:
        """Create a network of the ensemble's name."""
        with translated("create a network"):
            self._client.networks.create(
                ensemble, driver="bridge", labels={ENSEMBLE_LABEL: ensemble}
            )

    def create_container(self, ensemble: str, name: str, image: str, **options: Any) -> Container:
        """Create a container of an ensemble; it does not run yet.

        :param options: of the SDK's ``containers.create``.
        """
        with translated(f"create container {ensemble}-{name} of image {image}"):
            return self._client.containers.create(
                image, name=f"{ensemble}-{name}", labels={ENSEMBLE_LABEL: ensemble}, **options
            )

    def ports(self, port: int) -> dict[str, tuple[str, int | None]]:
        """Return the option that publishes a port where the engine finds a free one."""
        return {f"{port}/tcp": (self._publish_at, None)}

    def remove(self, ensemble: str) -> None:
        """Remove all that bears the ensemble's label, with the data; no-op when it is gone."""
        for container in self._containers(ensemble):
            with suppress(Removed), translated(f"remove container {container.id}"):
                container.remove(v=True, force=True)
        for network in self._networks(ensemble):
            with suppress(Removed), translated(f"remove network {ensemble}"):
                network.remove()

    def _containers(self, ensemble: str) -> list[Container]:
        with translated(f"list the containers of {ensemble}"):
            return self._client.containers.list(all=True, sparse=True, filters=_labelled(ensemble))

    def _networks(self, ensemble: str) -> list[Network]:
        with translated(f"list the networks of {ensemble}"):
            return self._client.networks.list(filters=_labelled(ensemble))


def _labelled(ensemble: str) -> dict[str, Any]:
    return {"label": f"{ENSEMBLE_LABEL}={ensemble}"}


def _told(error: Exception) -> str:
    """Return what the engine said, without the URL that the SDK puts before it."""
    return str(getattr(error, "explanation", None) or error)
