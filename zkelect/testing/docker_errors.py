"""What can go wrong with a Docker engine, told for people. Needs no SDK."""

from __future__ import annotations

from zkelect.errors import Unreachable

__all__ = ["EngineFailed", "EngineNotFound", "ImageNotFound", "Removed"]


class EngineNotFound(Unreachable):
    """There is no Docker engine to ask, or no SDK to ask it with.

    :ivar problem: what is missing, and what to do.
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"no Docker ensemble can be started: {problem}")


class EngineFailed(Unreachable):
    """The Docker engine refused something, or could not be asked any more.

    :ivar doing: what it was asked for. :ivar problem: what it answered.
    """

    def __init__(self, doing: str, problem: str) -> None:
        self.doing = doing
        self.problem = problem
        super().__init__(f"the Docker engine could not {doing}: {problem}")


class Removed(EngineFailed):
    """The engine does not know it any more: it was removed."""


class ImageNotFound(Unreachable):
    """The engine does not have the image, and could not pull it.

    :ivar image: its name. :ivar problem: what the engine answered.
    """

    def __init__(self, image: str, problem: str) -> None:
        self.image = image
        self.problem = problem
        super().__init__(
            f"image {image} is not on this Docker engine, and could not be pulled: {problem}. "
            "Mend the engine's way to its registry, or load the image (docker load), or name "
            "another one: DockerEnsemble(image=…)"
        )
