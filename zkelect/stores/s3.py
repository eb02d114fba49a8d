"""A manifest in an S3 bucket that only the present leader replaces."""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from zkelect.errors import (
    DomainTaken,
    InvalidArgument,
    Lost,
    Refused,
    RequestFailed,
    StoreBusy,
    UnfitStore,
)
from zkelect.stores.fence import Claimant, Gate, patience, present, valid_timeout
from zkelect.stores.s3_manifest import Manifest, Snapshot
from zkelect.stores.s3_object import OutcomeUnknown, Overtaken, S3Object
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    import boto3

    from zkelect.stores.mark import Mark

__all__ = ["S3Fence"]

_LONGEST_KEY: Final = 1000  # bytes; S3 takes 1024, and the probe's key is longer than this one


class S3Fence:
    """One object in an S3 bucket, the manifest, that only the present leader replaces.

    ::

        fence = stores.S3Fence(bucket="releases", key="current", domain="release")
        fence.claim(leadership)
        fence.replace(leadership, b"releases/2026-11-30.tar")

    Promises: mark and data are one object, written as a whole on the condition that it is
    still the one that was looked at (If-Match with its ETag; If-None-Match for the first).
    So a refused leader writes nothing, and no write of an older token follows a claim. Every
    write has an id of its own in the body: the same data never have the same ETag twice. An
    answer that was lost is cleared up by reading back, and by making the same write again.
    A store that ignores either condition is refused at the first claim: UnfitStore.

    Does not promise: to see a proxy that drops the conditions only now and then; to guard
    writes that go round this class, or other objects. Large data go into an object of their
    own, under a key that is never used again, before the manifest is made to name it; what a
    refused leader has uploaded so is left over, and named by nothing.

    What a loss costs: S3 confirms a write when it is durable. Where a bucket is replicated to
    another region, or an older version is made the current one, the mark goes back with the
    data: FenceStateLost for each fence that has seen a higher one; a fence made after it does
    not know. An object deleted after the claim is FenceStateLost, too.

    Isolation: linearizable, for this one object; a read sees the newest. Writers do not wait
    for one another: who was overtaken looks again, and is refused or tries again.

    Cost: a claim is two requests, and two or three more the first time, for the probe;
    ``replace`` is one after a claim, ``read`` or ``replace`` of the same fence, else two; ``read``
    is one. Each waits for the server no longer than half of ``timeout`` or of the lease left.

    Needs s3:GetObject, s3:PutObject and s3:ListBucket (without which S3 answers 403 for an
    object that is not there), on the key and on ``KEY.zkelect-probe``. Any thread may use it,
    one at a time; after a fork, make another.

    :param bucket: the bucket's name; it must exist.
    :param key: the manifest's key, 1 to 1000 bytes.
    :param domain: which election guards it: 1 to 255 printable characters; one for each key.
    :param session: a boto3 session, if not a new one.
    :param timeout: seconds to reach a result in, more than 0, or the lease left if that is less.
    :param options: what ``session.client("s3", …)`` takes, as ``endpoint_url``, ``config``. Of a
        config, timeouts and retries are replaced.
    :raises InvalidArgument: an argument is outside its range; nothing was sent.
    """

    def __init__(
        self,
        *,
        bucket: str,
        key: str,
        domain: str,
        session: boto3.Session | None = None,
        timeout: float = 5.0,
        **options: Any,
    ) -> None:
        self._timeout = valid_timeout(timeout)
        bucket, key = _valid_bucket(bucket), _valid_key(key)
        self._gate = Gate(store=f"s3://{bucket}/{key}", domain=domain, lock=threading.Lock())
        self._object = S3Object(bucket, key, session, options)
        self._turn = threading.Lock()
        self._seen = Snapshot()
        self._probed = False

    def claim(self, claimant: Claimant, *, initialize: bool = False) -> None:
        """Raise the mark to the claimant's token: once per term, before its first read.

        Idempotent: a claim of unknown outcome is made again with the same token.

        :param initialize: for likeness with stores that can come back empty; nothing changes here.
        :raises Lost: the lease was over or suspended, before or meanwhile.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no; UnfitStore: the store
            ignores conditions, or the object is no manifest; StoreBusy: others kept changing it.
        :raises RequestFailed: S3 could not be asked, or did not say what became of it.
        """
        with self._alone(claimant) as attempt:
            self._probe(attempt)
            seen = self._look(attempt)
            while True:
                mark = self._gate.claim(seen.mark, claimant, initialize=initialize)
                if mark == seen.mark or self._write(attempt, seen, self._claimed(seen, mark)):
                    break
                seen = self._seen
            self._gate.confirm(mark)

    def read(self, claimant: Claimant) -> bytes:
        """Return the data; empty before the first :meth:`replace`.

        :raises Lost: the lease was over or suspended.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no.
        :raises RequestFailed: S3 could not be asked.
        """
        self._claim_bare(claimant)
        with self._alone(claimant) as attempt:
            seen = self._look(attempt)
            self._guard(seen, attempt)
            return seen.data

    def replace(self, claimant: Claimant, data: bytes) -> None:
        """Replace the data.

        With a bare token, its first call makes the claim.

        :param data: any bytes; they are sent, and read back, as a whole.
        :raises Lost: the lease was over or suspended, before or meanwhile; nothing was written.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no, or StoreBusy: others
            kept changing it.
        :raises RequestFailed: S3 could not be asked, or did not say what became of it; if the
            message says "unknown", the data may have been replaced.
        """
        if not isinstance(data, bytes):
            raise InvalidArgument("data", data, "bytes")
        self._claim_bare(claimant)
        with self._alone(claimant) as attempt:
            seen = self._remembered(attempt)
            self._guard(seen, attempt)
            while not self._write(attempt, seen, self._replaced(seen, data)):
                seen = self._seen
                self._guard(seen, attempt)
                if unknown := self._unknown(attempt):
                    raise unknown

    def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed; writes nothing.

        :raises UnfitStore: the object is no manifest.
        :raises RequestFailed: S3 could not be asked.
        """
        return self._fetch(self._timeout).mark

    # --- one call ---------------------------------------------------------------------------

    @contextmanager
    def _alone(self, claimant: Claimant) -> Iterator[_Attempt]:
        present(claimant)
        seconds = patience(claimant, self._timeout)
        attempt = _Attempt(claimant, seconds, time.monotonic() + seconds)
        if not self._turn.acquire(timeout=seconds):
            detail = f"another thread's request held it for {seconds:g} s"
            raise self._gate.refuse(StoreBusy, claimant, detail)
        try:
            yield attempt
        except Lost as lost:
            if unknown := self._unknown(attempt):
                raise unknown from lost
            raise
        finally:
            self._turn.release()

    def _claim_bare(self, claimant: Claimant) -> None:
        if isinstance(claimant, Token) and claimant != self._gate.floor:
            self.claim(claimant)

    def _probe(self, attempt: _Attempt) -> None:
        if self._probed:
            return
        if fault := self._object.probe(attempt.half()):
            raise self._gate.refuse(UnfitStore, attempt.claimant, fault)
        self._probed = True

    def _guard(self, seen: Snapshot, attempt: _Attempt) -> None:
        try:
            self._gate.guard(seen.mark, attempt.claimant)
        except Refused as refusal:
            if attempt.lost is not None:
                refusal.add_note(f"An attempt before it may have been written: {attempt.lost}")
            raise

    # --- looking ----------------------------------------------------------------------------

    def _remembered(self, attempt: _Attempt) -> Snapshot:
        """Return what was seen last if it would let us pass: then the condition decides.

        A refusal comes from a fresh look only.
        """
        mark = self._seen.mark
        if mark is not None and mark.token == present(attempt.claimant):
            return self._seen
        return self._look(attempt)

    def _look(self, attempt: _Attempt) -> Snapshot:
        present(attempt.claimant)
        self._seen = self._fetch(attempt.half())
        return self._seen

    def _fetch(self, seconds: float) -> Snapshot:
        if (found := self._object.get(seconds)) is None:
            return Snapshot()
        body, etag = found
        try:
            manifest = Manifest.parse(body)
        except InvalidArgument as error:
            raise self._unfit(UnfitStore, f"the object is no manifest: {error}") from error
        if manifest.domain != self._gate.domain:
            detail = f"the object belongs to domain {manifest.domain!r}"
            raise self._unfit(DomainTaken, detail)
        return Snapshot(manifest=manifest, etag=etag)

    def _unfit(self, kind: type[Refused], detail: str) -> Refused:
        return kind(store=self._gate.store, domain=self._gate.domain, detail=detail)

    # --- writing ----------------------------------------------------------------------------

    def _claimed(self, seen: Snapshot, mark: Mark) -> Manifest:
        write = uuid.uuid4().hex
        kept = write if seen.manifest is None else seen.manifest.data_write
        domain = self._gate.domain
        return Manifest(domain=domain, write=write, data_write=kept, mark=mark, data=seen.data)

    def _replaced(self, seen: Snapshot, data: bytes) -> Manifest:
        assert seen.manifest is not None  # the gate lets nothing pass without a mark
        write = uuid.uuid4().hex
        return attrs.evolve(seen.manifest, write=write, data_write=write, data=data)

    def _write(self, attempt: _Attempt, seen: Snapshot, manifest: Manifest) -> bool:
        """Write over what was seen, and over nothing else; False: it is there no longer.

        An attempt of unknown outcome may still arrive. Making the same write again settles it:
        of the two only one finds the ETag that both ask for.
        """
        body = manifest.encode()
        while True:
            present(attempt.claimant)
            try:
                etag = self._object.put(body, seen.etag, attempt.half())
            except Overtaken:
                pass
            except OutcomeUnknown as failure:
                attempt.lost = failure
            else:
                self._seen = Snapshot(manifest=manifest, etag=etag)
                return True
            now = self._look_back(attempt)
            if now.manifest is not None and now.manifest.holds(manifest.write):
                return True
            if now.etag != seen.etag:
                return False

    def _look_back(self, attempt: _Attempt) -> Snapshot:
        if attempt.is_over:
            detail = f"others kept changing the object for {attempt.timeout:g} s"
            raise self._unknown(attempt) or self._gate.refuse(StoreBusy, attempt.claimant, detail)
        try:
            return self._look(attempt)
        except RequestFailed as failure:
            if unknown := self._unknown(attempt):
                raise unknown from failure
            raise

    def _unknown(self, attempt: _Attempt) -> RequestFailed | None:
        if attempt.lost is None:
            return None
        cause = f"the outcome is unknown, it may have been written: {attempt.lost}"
        return RequestFailed(self._object.url, "PUT", cause)


@attrs.define
class _Attempt:
    """One call: who makes it, how long it may take, and what has become unclear in it."""

    claimant: Claimant
    timeout: float
    deadline: float
    lost: OutcomeUnknown | None = None

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline

    def half(self) -> float:
        """Return how long one request may take: time must be left to read back what it did."""
        return (self.deadline - time.monotonic()) / 2


def _valid_bucket(bucket: str) -> str:
    if not isinstance(bucket, str) or not bucket or "/" in bucket:
        raise InvalidArgument("bucket", bucket, "the name of a bucket, without s3:// and key")
    return bucket


def _valid_key(key: str) -> str:
    form = f"1 to {_LONGEST_KEY} bytes of UTF-8, no control characters"
    if not isinstance(key, str) or not key.isprintable():
        raise InvalidArgument("key", key, form)
    if not 1 <= len(key.encode()) <= _LONGEST_KEY:
        raise InvalidArgument("key", key, form)
    return key
