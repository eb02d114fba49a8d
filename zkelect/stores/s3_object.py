"""One object of an S3 bucket, read and written on conditions; the only place that knows boto3."""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.parsers import ResponseParserError

from zkelect.errors import InvalidArgument, RequestFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["OutcomeUnknown", "Overtaken", "S3Object"]

_SHORTEST: Final = 1 / 16  # seconds
_PROBE: Final = ".zkelect-probe"
_PROBE_BODY: Final = b"Whether this store honours If-Match and If-None-Match is asked here.\n"
_NOBODYS_ETAG: Final = f'"{"0" * 32}"'
# A condition that does not hold; another write at the same time; nothing there to compare with.
_CHANGED: Final = {409, 412, 404}
_NO_BUCKET: Final = "NoSuchBucket"
_NOT_IMPLEMENTED: Final = 501

# To make a client is not thread-safe, and sessions may be shared; to use one is.
_making: Final = threading.Lock()


class Overtaken(Exception):
    """The object is not as the condition says; nothing was written."""


class OutcomeUnknown(Exception):
    """No answer, or none that tells: it was written, or was not, or will be."""


class _Unsupported(RequestFailed):
    """The store does not know conditions at all."""


class S3Object:
    """An object, by its bucket and key.

    botocore repeats nothing here: a conditional write that was repeated after a lost answer
    meets its own first attempt, and is told 412 for a write that was made.

    :param options: for ``session.client("s3", …)``.
    :raises InvalidArgument: boto3 does not take them.
    """

    def __init__(
        self, bucket: str, key: str, session: boto3.Session | None, options: Mapping[str, Any]
    ) -> None:
        endpoint = options.get("endpoint_url")
        if endpoint is not None and not str(endpoint).startswith(("http://", "https://")):
            raise InvalidArgument("endpoint_url", endpoint, "http://HOST:PORT or https://HOST:PORT")
        self.url = f"s3://{bucket}/{key}"
        self._place = {"Bucket": bucket, "Key": key}
        self._session, self._options = session or boto3.Session(), dict(options)
        self._clients: dict[float, Any] = {}
        try:
            self._client(1.0)
        except (BotoCoreError, ValueError, TypeError) as error:
            raise InvalidArgument("options", dict(options), f"what boto3 takes: {error}") from error

    def get(self, seconds: float) -> tuple[bytes, str] | None:
        """Return the body and its ETag, or None if there is no such object.

        :param seconds: how long to wait for the server, each time something is waited for.
        :raises RequestFailed: the store could not be asked.
        """
        try:
            with self._told("GET"):
                found = self._client(seconds).get_object(**self._place)
                return found["Body"].read(), found["ETag"]
        except Overtaken:
            return None
        except OutcomeUnknown as failure:
            raise RequestFailed(self.url, "GET", str(failure)) from failure

    def put(self, body: bytes, etag: str | None, seconds: float) -> str:
        """Write if the object still has this ETag, or, with None, if there is none; return the new.

        :raises Overtaken: the condition does not hold; nothing was written.
        :raises OutcomeUnknown: it may have been written, or may still be.
        :raises RequestFailed: the store did not take the request; nothing was written.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        with self._told("PUT"):
            written = self._client(seconds).put_object(**self._place, Body=body, **condition)
        if not (made := written.get("ETag")):
            raise OutcomeUnknown("the answer has no ETag")
        return str(made)

    def probe(self, seconds: float) -> str:
        """Ask the store, beside the object, whether it honours conditions; return the fault.

        Two requests, three the first time. What they leave is one small object.

        :raises RequestFailed: it could not be asked.
        """
        try:
            if self._accepts(seconds, IfNoneMatch="*") and self._accepts(seconds, IfNoneMatch="*"):
                return "If-None-Match is ignored: an object was made twice"
            if self._accepts(seconds, IfMatch=_NOBODYS_ETAG):
                return "If-Match is ignored: an object was replaced under an ETag it never had"
        except _Unsupported as answer:
            return f"conditions are not implemented there: {answer.cause}"
        return ""

    def _accepts(self, seconds: float, **condition: str) -> bool:
        place = {**self._place, "Key": self._place["Key"] + _PROBE}
        try:
            with self._told("probe"):
                self._client(seconds).put_object(**place, Body=_PROBE_BODY, **condition)
        except Overtaken:
            return False
        except OutcomeUnknown as failure:
            raise RequestFailed(self.url, "probe", str(failure)) from failure
        return True

    @contextmanager
    def _told(self, request: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise self._answered(request, error) from error
        except (HTTPClientError, ResponseParserError) as error:
            raise OutcomeUnknown(str(error)) from error
        except BotoCoreError as error:  # it did not come as far as sending
            raise RequestFailed(self.url, request, str(error)) from error

    def _answered(self, request: str, error: ClientError) -> Exception:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status in _CHANGED and error.response["Error"]["Code"] != _NO_BUCKET:
            return Overtaken(str(error))
        if status == _NOT_IMPLEMENTED:
            return _Unsupported(self.url, request, str(error))
        if status >= 500:
            return OutcomeUnknown(str(error))
        return RequestFailed(self.url, request, str(error))

    def _client(self, seconds: float) -> Any:
        """Return a client that waits no longer; botocore fixes that when a client is made.

        A power of two, so that a lease that shrinks does not make a client for each request.
        """
        limit = 2.0 ** math.floor(math.log2(max(seconds, _SHORTEST)))
        with _making:
            if limit not in self._clients:
                self._clients[limit] = self._make_client(limit)
            return self._clients[limit]

    def _make_client(self, limit: float) -> Any:
        once = {"total_max_attempts": 1}
        ours = Config(connect_timeout=limit, read_timeout=limit, retries=once)
        config = self._options.get("config", Config()).merge(ours)
        return self._session.client("s3", **{**self._options, "config": config})
