"""S3Fence: the manifest ends with the latest rows, and names the object with those before.

Each request is cut by its connection: lost before it is sent, or with the answer.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs
import boto3
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.httpsession import URLLib3Session
from servers.seaweedfs import SeaweedFs

from chaos.history import boottime
from chaos.stores import DOMAIN, Row
from chaos.traps import Trap
from zkelect.stores import S3Fence
from zkelect.stores.s3_manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from chaos.stores import Place, Store
    from zkelect.stores.fence import Claimant

__all__ = ["make"]

_TIMEOUT: Final = 2.0
_BEFORE, _AFTER = "before it is sent", "with the answer"
_KEY: Final = "log"
_ROWS: Final = 100
"""In one object; a manifest with all of them would be sent again with each row."""


class _S3:
    """Appends to what was read last: who reads, and replaces too late, would undo others' rows."""

    def __init__(self, place: Place) -> None:
        self._told = place.directory / "s3.json"
        self._trap = Trap(place.directory / "s3.trap", (_BEFORE, _AFTER))
        self._known = _Part()

    @contextmanager
    def serve(self) -> Iterator[None]:
        with SeaweedFs() as server:
            told = {"bucket": server.create_bucket(), "options": server.options()}
            self._told.write_text(json.dumps(told), "utf-8")
            yield

    def claim(self, claimant: Claimant) -> None:
        self._fence.claim(claimant)

    def read(self) -> str:
        self._known = self._latest()
        return self._known.rows[-1].op if self._known.rows else ""

    def append(self, claimant: Claimant, row: Row) -> None:
        part = self._with_room(row.op).add(attrs.evolve(row, at=boottime()))
        self._fence.replace(claimant, part.encode())

    def log(self) -> Sequence[Row]:
        part = self._latest()
        rows = part.rows
        while part.before:
            part = _Part.parse(self._get(part.before))
            rows = part.rows + rows
        return rows

    def disturb(self) -> AbstractContextManager[None]:
        return self._trap.laid()

    def _latest(self) -> _Part:
        try:
            return _Part.parse(Manifest.parse(self._get(_KEY)).data)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            return _Part()

    def _with_room(self, op: str) -> _Part:
        """Return what was read last; when it is full, put it aside under a key of its own."""
        if len(self._known.rows) < _ROWS:
            return self._known
        key = f"{_KEY}-{op}"
        self._client.put_object(Bucket=self._bucket, Key=key, Body=self._known.encode())
        return _Part(before=key)

    def _get(self, key: str) -> bytes:
        body: bytes = self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        return body

    def _send(self, request: Any, **_: Any) -> None:
        """Called by botocore before it sends; what this raises is to it what a network does."""
        end = self._trap.spring()
        if end == _AFTER:
            URLLib3Session().send(request)
        if end:
            raise ConnectionClosedError(endpoint_url=request.url)

    @cached_property
    def _bucket(self) -> str:
        return str(json.loads(self._told.read_text("utf-8"))["bucket"])

    @cached_property
    def _options(self) -> dict[str, str]:
        options: dict[str, str] = json.loads(self._told.read_text("utf-8"))["options"]
        return options

    @cached_property
    def _client(self) -> Any:
        return boto3.client("s3", **self._options)

    @cached_property
    def _fence(self) -> S3Fence:
        session = boto3.Session()
        session.events.register("before-send.s3.PutObject", self._send)
        return S3Fence(
            bucket=self._bucket,
            key=_KEY,
            domain=DOMAIN,
            session=session,
            timeout=_TIMEOUT,
            **self._options,
        )


@attrs.frozen(kw_only=True)
class _Part:
    """A part of the log. :ivar before: key of the object with the part before; empty: none."""

    before: str = ""
    rows: list[Row] = attrs.field(factory=list)

    def add(self, row: Row) -> _Part:
        return attrs.evolve(self, rows=[*self.rows, row])

    def encode(self) -> bytes:
        return json.dumps(attrs.asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes) -> _Part:
        told = json.loads(data or "{}")
        rows = [Row(**row) for row in told.get("rows", ())]
        return cls(before=told.get("before", ""), rows=rows)


def make(place: Place) -> Store:
    """Return the store whose server and bucket are written in the run's folder."""
    return _S3(place)
