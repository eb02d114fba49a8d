"""S3 fences on a server, and moto as one in this process."""

from __future__ import annotations

import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from stores.benches import token_of
from werkzeug.serving import WSGIRequestHandler, make_server

from zkelect.stores.mark import Mark
from zkelect.stores.s3 import S3Fence
from zkelect.stores.s3_manifest import Manifest
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from zkelect.stores.fence import Claimant

KEY = "manifests/current"
SESSION = boto3.Session()


class S3Bench:
    """Fences on one bucket, whose versions are the store's own log.

    :param options: what boto3 must be told to come to the server.
    :param versioned: without versions, the log has what is there last.
    """

    volatile = False

    def __init__(self, options: Mapping[str, str], *, versioned: bool = True) -> None:
        self.options: dict[str, Any] = dict(options)
        once = Config(retries={"total_max_attempts": 1})
        self.client = SESSION.client("s3", config=once, **self.options)
        self.bucket = f"test-{uuid.uuid4()}"
        self.client.create_bucket(Bucket=self.bucket)
        if not versioned:
            return
        versions = {"Status": "Enabled"}
        self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration=versions)

    def fence(
        self, *, domain: str = "d", timeout: float = 60.0, key: str = "", **options: Any
    ) -> S3Fence:
        place = {"bucket": self.bucket, "key": key or (KEY if domain == "d" else KEY + "-other")}
        given = {"session": SESSION, **self.options, **options}
        return S3Fence(**place, domain=domain, timeout=timeout, **given)

    def write(self, fence: S3Fence, claimant: Claimant, entry: str) -> None:
        fence.replace(claimant, f"{token_of(claimant)} {entry}".encode())

    def log(self) -> list[tuple[Token, str]]:
        """Return each replacement of the data, in the order of the object's versions."""
        written = (m for m in self.manifests() if m.data and m.write == m.data_write)
        words = (manifest.data.decode().partition(" ") for manifest in written)
        return [(Token.parse(token), entry) for token, _, entry in words]

    def manifests(self) -> list[Manifest]:
        """Return every version that the object ever had, the first one first."""
        pages = self.client.get_paginator("list_object_versions")
        place = {"Bucket": self.bucket, "Prefix": KEY}
        found = [v for page in pages.paginate(**place) for v in page.get("Versions", ())]
        names = [version["VersionId"] for version in found if version["Key"] == KEY]
        return [Manifest.parse(self.body(name)) for name in reversed(names)]

    def body(self, version: str = "") -> bytes:
        which = {"VersionId": version} if version else {}
        found = self.client.get_object(Bucket=self.bucket, Key=KEY, **which)
        body: bytes = found["Body"].read()
        return body

    def restore(self, mark: Token | None) -> None:
        if mark is None:
            self.client.delete_object(Bucket=self.bucket, Key=KEY)
            return
        old = Manifest(domain="d", write="old", data_write="older", mark=Mark(token=mark), data=b"")
        self.put(old.encode())

    def put(self, body: bytes) -> None:
        """Write round the fence."""
        self.client.put_object(Bucket=self.bucket, Key=KEY, Body=body)


@attrs.frozen
class Fault:
    """What becomes of one write of the manifest.

    :ivar made: whether it is made. :ivar then: what happens next. :ivar status: what is
        answered in the end, whatever became of it.
    """

    made: bool
    status: int
    then: Callable[[], object] = attrs.field(default=lambda: None)


class Moto:
    """Moto as a server, one request at a time: between looking and writing it holds no lock.

    :ivar asked: method, key and status of each request.
    :ivar faults: for the next writes, one each, of the key :ivar faulty:, the manifest's.
    :ivar unreadable: whether the manifest cannot be read. :ivar on_read: called when it is.
    """

    def __init__(self) -> None:
        self._backend = DomainDispatcherApplication(create_backend_app)
        self._turn = threading.Lock()
        self.asked: list[tuple[str, str, int]] = []
        self.faults: list[Fault] = []
        self.faulty = KEY
        self.on_read: Callable[[], object] = lambda: None
        self.unreadable = False
        self.options: dict[str, str] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        request = _request(environ)
        if request == ("GET", KEY):
            self.on_read()
        if request == ("GET", KEY) and self.unreadable:
            fault = Fault(made=False, status=500)
        elif request == ("PUT", self.faulty) and self.faults:
            fault = self.faults.pop(0)
        else:
            return self._serve(environ, start_response)
        if fault.made:
            self._serve(environ, lambda *_: lambda _: None)
        fault.then()
        self.asked.append((*request, fault.status))
        start_response(f"{fault.status} Fault", [("Content-Type", "application/xml")])
        return [b"<Error><Code>Fault</Code><Message>as the test said</Message></Error>"]

    def _serve(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        def start(status: str, *rest: Any) -> Any:
            self.asked.append((*_request(environ), int(status[:3])))
            return start_response(status, *rest)

        with self._turn:
            return list(self._backend(environ, start))


def _request(environ: WSGIEnvironment) -> tuple[str, str]:
    _, _, key = environ["PATH_INFO"].strip("/").partition("/")
    return environ["REQUEST_METHOD"], key


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        """Keep the test's output for what fails."""


@contextmanager
def moto() -> Iterator[Moto]:
    """Run moto on werkzeug's server; wsgiref's lets "Expect: 100-continue" wait for a second."""
    app = Moto()
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    app.options = {
        "endpoint_url": f"http://127.0.0.1:{server.server_port}",
        "region_name": "us-east-1",
        "aws_access_key_id": "zkelect",
        "aws_secret_access_key": "no secret",
    }
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield app
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
