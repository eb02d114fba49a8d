"""A stale writer that is held between its check and its write; on moto and on a real server."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from stores.bearers import make_bearer
from stores.benches import entries
from stores.http_bench import WITHIN, dropping
from stores.s3_bench import KEY, S3Bench

from zkelect.errors import Fenced, UnfitStore
from zkelect.stores.s3_object import S3Object

if TYPE_CHECKING:
    from stores.bearers import FakeBearer


class Turnstile:
    """Holds the writes of the manifest that come through a proxy, once it is shut."""

    def __init__(self) -> None:
        self.shut, self.arrived, self.opened = False, threading.Event(), threading.Event()

    def __call__(self, method: str, path: str) -> None:
        if self.shut and method == "PUT" and path.partition("?")[0].endswith(KEY):
            self.arrived.set()
            assert self.opened.wait(WITHIN)


def overtake(bench: S3Bench, old: FakeBearer, *dropped: str) -> BaseException | None:
    """Let the old leader check, the new one claim and write, and the old one's write go on.

    :param dropped: the headers that the old one's write loses on its way.
    :returns: what the old leader was told.
    """
    turnstile, new = Turnstile(), make_bearer(6)
    upstream = bench.options["endpoint_url"]
    with dropping(upstream, *dropped, before=turnstile) as proxy, ThreadPoolExecutor(1) as pool:
        slow, quick = bench.fence(endpoint_url=proxy), bench.fence()
        slow.claim(old)
        bench.write(slow, old, "in time")
        turnstile.shut = True
        late = pool.submit(bench.write, slow, old, "too late")
        assert turnstile.arrived.wait(WITHIN)
        quick.claim(new)
        bench.write(quick, new, "new")
        turnstile.opened.set()
        return late.exception()


def test_a_write_that_was_on_its_way_when_the_successor_claimed_is_refused(bench: S3Bench) -> None:
    old = make_bearer(5)
    told = overtake(bench, old)
    assert isinstance(told, Fenced)
    assert (entries(bench), old.ends) == (["in time", "new"], ["fenced"])


def test_a_bucket_without_versions_refuses_it_too(bench: S3Bench) -> None:
    plain, old = S3Bench(bench.options, versioned=False), make_bearer(5)
    assert isinstance(overtake(plain, old), Fenced)
    assert entries(plain) == ["new"]


def test_without_the_condition_the_same_write_comes_through(bench: S3Bench) -> None:
    """The control: the condition is lost on the way, and the probe says nothing about it."""
    with mock.patch.object(S3Object, "probe", return_value=""):
        told = overtake(bench, make_bearer(5), "If-Match")
    assert told is None
    tokens = [token for token, _ in bench.log()]
    assert entries(bench) == ["in time", "new", "too late"]
    assert tokens != sorted(tokens)


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_h58_a_store_that_ignores_a_condition_is_refused_at_the_claim(
    bench: S3Bench, header: str
) -> None:
    leader = make_bearer(5)
    with dropping(bench.options["endpoint_url"], header) as proxy:
        with pytest.raises(UnfitStore, match=f"{header} is ignored"):
            bench.fence(endpoint_url=proxy).claim(leader)
        with pytest.raises(UnfitStore):
            bench.write(bench.fence(endpoint_url=proxy), leader.token, "bare")
    assert (bench.fence().status(), bench.manifests(), leader.ends) == (None, [], [])


def test_h58_the_same_data_never_have_the_same_etag(bench: S3Bench) -> None:
    """A, B, A: the writer that saw the first A is refused at the second (no ABA)."""
    old = make_bearer(5)
    turnstile = Turnstile()
    upstream = bench.options["endpoint_url"]
    with dropping(upstream, before=turnstile) as proxy, ThreadPoolExecutor(1) as pool:
        slow, quick = bench.fence(endpoint_url=proxy), bench.fence()
        slow.claim(old)
        bench.write(slow, old, "A")
        turnstile.shut = True
        late = pool.submit(bench.write, slow, old, "late")
        assert turnstile.arrived.wait(WITHIN)
        for entry in ("B", "A"):
            bench.write(quick, old, entry)
        turnstile.shut = False
        turnstile.opened.set()
        late.result()
    writes = [manifest.write for manifest in bench.manifests()]
    assert entries(bench) == ["A", "B", "A", "late"]
    assert len(set(writes)) == len(writes)


def test_two_leaders_hammer_one_manifest(bench: S3Bench) -> None:
    """Both write as fast as they can; of the old one nothing comes after the new one's claim."""
    old, new = make_bearer(5), make_bearer(6)
    settled = threading.Event()

    def hammer() -> None:
        fence = bench.fence()
        fence.claim(old)
        for count in range(10_000):
            if count == 3:
                settled.set()
            bench.write(fence, old, str(count))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(hammer)
        assert settled.wait(WITHIN)
        fence = bench.fence()
        fence.claim(new)
        for count in range(5):
            bench.write(fence, new, str(count))
        assert isinstance(first.exception(), Fenced)
    marks = [manifest.mark.token for manifest in bench.manifests()]
    assert marks == sorted(marks)
    assert [token for token, _ in bench.log()][-5:] == [new.token] * 5
