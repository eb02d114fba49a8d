"""Three servers in containers, on whatever engine there is.

Only who names this folder, as ``tox -e docker`` does, collects its tests: they start an engine
where there is none.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from docker.errors import APIError, ImageNotFound
from election.actor import TICK
from image import debian
from image.engine import connected, find_engine

from zkelect.testing.docker import DockerEnsemble
from zkelect.testing.mending import mend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Operator
    from docker import DockerClient

HERE: Final = Path(__file__).parent
OFFICIAL: Final = "zookeeper:3.8"
LONGEST: Final = 20.0
"""Seconds: the longest session timeout that the servers grant."""

_log: Final = logging.getLogger(__name__)


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    folders = [Path(config.invocation_params.dir, arg.split("::")[0]) for arg in config.args]
    return None if any(folder.resolve().is_relative_to(HERE) for folder in folders) else True


# --- engine and image ------------------------------------------------------------------------


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerClient]:
    """A client of the engine that DockerEnsemble finds, too."""
    with find_engine() as address, pytest.MonkeyPatch.context() as environment:
        environment.setenv("DOCKER_HOST", address)
        with connected(address) as client:
            yield client


@pytest.fixture(scope="session")
def image(engine: DockerClient) -> str:
    """The official image where a registry can be reached, ours elsewhere."""
    return os.environ.get("ZKELECT_DOCKER_IMAGE") or _official(engine) or debian.build(engine)


def _official(engine: DockerClient) -> str | None:
    try:
        engine.images.get(OFFICIAL)
    except ImageNotFound:
        try:
            engine.images.pull(OFFICIAL)
        except APIError as error:
            _log.info("%s cannot be pulled: %s", OFFICIAL, error.explanation)
            return None
    return OFFICIAL


# --- servers ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def three_servers(image: str) -> Iterator[DockerEnsemble]:
    with DockerEnsemble(3, image=image, tick_time=TICK, max_session_timeout=LONGEST) as started:
        yield started


@pytest.fixture
def ensemble(three_servers: DockerEnsemble) -> Iterator[DockerEnsemble]:
    """Three servers, mended after the test."""
    yield three_servers
    mend(three_servers)


@pytest.fixture
def operator(operate: Callable[..., Operator], ensemble: DockerEnsemble) -> Operator:
    return operate(ensemble.hosts)
