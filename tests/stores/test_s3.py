"""S3: answers that are lost, objects that are not ours, and what a call costs."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError
from stores.bearers import FakeBearer, make_bearer, make_token
from stores.benches import entries, marked
from stores.s3_bench import KEY, Fault, Moto, S3Bench, moto
from stores.s3_race import *  # noqa: F403  # collected here, with this module's bench

from zkelect.errors import (
    DomainTaken,
    Fenced,
    FenceStateLost,
    InvalidArgument,
    LeadershipLost,
    RequestFailed,
    StoreBusy,
    Unclaimed,
    UnfitStore,
)
from zkelect.stores.mark import Mark
from zkelect.stores.s3 import S3Fence
from zkelect.stores.s3_manifest import Manifest
from zkelect.stores.s3_object import S3Object
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROBE = f"{KEY}.zkelect-probe"


@pytest.fixture(scope="module")
def running() -> Iterator[Moto]:
    with moto() as server:
        yield server


@pytest.fixture
def server(running: Moto) -> Moto:
    running.faults.clear()
    running.unreadable, running.faulty, running.on_read = False, KEY, lambda: None
    running.asked.clear()
    return running


@pytest.fixture
def bench(server: Moto) -> S3Bench:
    return S3Bench(server.options)


@pytest.fixture
def leader() -> FakeBearer:
    return make_bearer(5)


@pytest.fixture
def fence(bench: S3Bench, server: Moto, leader: FakeBearer) -> S3Fence:
    """A fence whose leader has claimed."""
    made = bench.fence()
    made.claim(leader)
    server.asked.clear()
    return made


# --- an answer that is lost --------------------------------------------------------------------


@pytest.mark.parametrize("made", [True, False])
def test_a_write_whose_answer_was_lost_is_made_once(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer, made: bool
) -> None:
    server.faults.append(Fault(made=made, status=500))
    bench.write(fence, leader, "once")
    bench.write(fence, leader, "after")
    assert entries(bench) == ["once", "after"]


@pytest.mark.parametrize("made", [True, False])
def test_a_claim_whose_answer_was_lost_is_made_once(
    bench: S3Bench, server: Moto, leader: FakeBearer, made: bool
) -> None:
    server.faults.append(Fault(made=made, status=503))
    bench.fence().claim(leader)
    assert [manifest.mark.token for manifest in bench.manifests()] == [leader.token]


def test_an_answer_that_does_not_come_in_time_is_as_good_as_lost(
    bench: S3Bench, server: Moto, fence: S3Fence
) -> None:
    leader = make_bearer(5, lease=4.0)
    given_up = threading.Event()
    server.faults.append(Fault(made=True, status=200, then=lambda: given_up.wait(60.0)))
    bench.write(fence, leader, "slow")
    given_up.set()
    assert entries(bench) == ["slow"]


def test_a_write_that_arrives_after_it_was_made_again_changes_nothing(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer
) -> None:
    """The condition of the first attempt no longer holds when it arrives."""
    sent: list[tuple[bytes, str | None]] = []
    original = S3Object.put

    def put(self: S3Object, body: bytes, etag: str | None, seconds: float) -> str:
        sent.append((body, etag))
        return original(self, body, etag, seconds)

    server.faults.append(Fault(made=False, status=500))
    with mock.patch.object(S3Object, "put", put):
        bench.write(fence, leader, "once")
    (body, etag), again = sent
    assert again == (body, etag)
    with pytest.raises(ClientError, match="PreconditionFailed"):
        bench.client.put_object(Bucket=bench.bucket, Key=KEY, Body=body, IfMatch=etag)
    assert entries(bench) == ["once"]


def test_a_write_that_a_successors_claim_has_kept_was_made(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer
) -> None:
    successor = make_bearer(6)
    server.faults.append(Fault(made=True, status=500, then=lambda: bench.fence().claim(successor)))
    bench.write(fence, leader, "kept")
    assert bench.fence().read(successor) == f"{leader.token} kept".encode()
    with pytest.raises(Fenced):
        bench.write(fence, leader, "next")


def test_of_a_write_that_a_successor_has_replaced_both_are_told(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer
) -> None:
    server.faults.append(
        Fault(made=True, status=500, then=lambda: bench.write(bench.fence(), make_token(6), "new"))
    )
    with pytest.raises(Fenced) as caught:
        bench.write(fence, leader, "perhaps")
    assert ["may have been written" in note for note in caught.value.__notes__] == [True]
    assert leader.ends == ["fenced"]


@pytest.mark.parametrize("made", [True, False])
def test_a_write_that_the_same_leader_has_replaced_is_unknown(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer, made: bool
) -> None:
    other = bench.fence()
    server.faults.append(
        Fault(made=made, status=500, then=lambda: bench.write(other, leader, "other"))
    )
    with pytest.raises(RequestFailed, match="outcome is unknown, it may have been written"):
        bench.write(fence, leader, "perhaps")
    assert (entries(bench)[-1], leader.ends) == ("other", [])


def test_a_write_that_cannot_be_read_back_is_unknown(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer
) -> None:
    server.faults.append(
        Fault(made=True, status=500, then=lambda: setattr(server, "unreadable", True))
    )
    with pytest.raises(RequestFailed, match="outcome is unknown"):
        bench.write(fence, leader, "perhaps")
    server.unreadable = False
    bench.write(fence, leader, "after")
    assert entries(bench) == ["perhaps", "after"]


# --- others, at the same time ------------------------------------------------------------------


@pytest.mark.parametrize("status", [409, 412, 404])
def test_a_write_that_was_overtaken_looks_again(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer, status: int
) -> None:
    server.faults.append(Fault(made=False, status=status))
    bench.write(fence, leader, "second try")
    assert entries(bench) == ["second try"]


def test_two_writers_of_one_leader_follow_each_other(
    bench: S3Bench, fence: S3Fence, leader: FakeBearer
) -> None:
    other = bench.fence()
    for entry in ("a", "b", "c"):
        bench.write(fence, leader, entry)
        bench.write(other, leader, entry.upper())
    assert entries(bench) == ["a", "A", "b", "B", "c", "C"]


class Skipping:
    """A clock that skips seconds: the last request of a call has them, too, to be answered in."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    def skip(self) -> None:
        self._skipped += 15.0


def test_who_is_overtaken_for_ever_gives_up_in_time(
    bench: S3Bench, server: Moto, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Skipping()
    monkeypatch.setattr("zkelect.stores.s3.time", clock)
    server.faults.extend([Fault(made=False, status=412, then=clock.skip)] * 10_000)
    with pytest.raises(StoreBusy, match=r"for 40 s"):
        bench.fence(timeout=40.0).claim(leader)
    assert len(server.faults) == 10_000 - 3


def test_a_lost_answer_in_time_without_end_is_unknown(
    bench: S3Bench, server: Moto, leader: FakeBearer
) -> None:
    server.faults.extend([Fault(made=False, status=500)] * 10_000)
    with pytest.raises(RequestFailed, match="outcome is unknown"):
        bench.fence(timeout=0.5).claim(leader)


def test_another_thread_that_holds_the_fence_is_waited_for_in_time(
    bench: S3Bench, server: Moto, leader: FakeBearer
) -> None:
    fence, inside, leave = bench.fence(), threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        assert leave.wait(60.0)

    server.faults.append(Fault(made=False, status=412, then=hold))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(fence.claim, leader)
        assert inside.wait(60.0)
        with pytest.raises(StoreBusy, match=r"another thread.*0\.05 s"):
            fence.claim(make_bearer(6, lease=0.05))
        leave.set()
        first.result()


# --- the lease ---------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["claim", "read", "replace"])
def test_an_expired_lease_sends_nothing(
    server: Moto, fence: S3Fence, leader: FakeBearer, call: str
) -> None:
    leader.lease = 0.0
    with pytest.raises(LeadershipLost):
        getattr(fence, call)(leader, *([b"late"] if call == "replace" else []))
    assert server.asked == []


def test_a_lease_that_ends_between_two_requests_ends_the_call(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer
) -> None:
    server.faults.append(Fault(made=False, status=412, then=lambda: setattr(leader, "lease", 0.0)))
    with pytest.raises(LeadershipLost):
        bench.write(fence, leader, "late")
    assert [method for method, _, _ in server.asked] == ["PUT"]
    assert entries(bench) == []


def test_a_lease_that_ends_while_it_looks_writes_nothing(
    bench: S3Bench, server: Moto, leader: FakeBearer
) -> None:
    server.on_read = lambda: setattr(leader, "lease", 0.0)
    with pytest.raises(LeadershipLost):
        bench.fence().claim(leader)
    assert [method for method, key, _ in server.asked if key == KEY] == ["GET"]


@pytest.mark.parametrize("made", [True, False])
def test_a_lease_that_ends_before_a_lost_answer_is_settled_leaves_it_unknown(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer, made: bool
) -> None:
    """LeadershipLost alone would be read as "nothing was written"."""

    def end() -> None:
        leader.lease = 0.0

    server.faults.append(Fault(made=made, status=500, then=end))
    with pytest.raises(RequestFailed, match="outcome is unknown, it may have been") as caught:
        bench.write(fence, leader, "late")
    assert isinstance(caught.value.__cause__, LeadershipLost)
    assert {method for method, _, _ in server.asked} == {"PUT"}  # nothing was asked any more
    assert entries(bench) == (["late"] if made else [])


def test_a_lease_that_ends_while_it_reads_back_writes_nothing_again(
    bench: S3Bench, server: Moto, fence: S3Fence, leader: FakeBearer
) -> None:
    server.faults.append(Fault(made=False, status=500))
    server.on_read = lambda: setattr(leader, "lease", 0.0)
    with pytest.raises(RequestFailed, match="outcome is unknown"):
        bench.write(fence, leader, "late")
    assert server.asked == [("PUT", KEY, 500), ("GET", KEY, 200)]


# --- what a call costs -------------------------------------------------------------------------


def test_what_a_call_costs(bench: S3Bench, server: Moto, leader: FakeBearer) -> None:
    def cost(call: Callable[[], object]) -> list[tuple[str, str, int]]:
        server.asked.clear()
        call()
        return list(server.asked)

    first, second = bench.fence(), bench.fence()
    probing = [("PUT", PROBE, 200), ("PUT", PROBE, 412), ("PUT", PROBE, 412)]
    claiming = [("GET", KEY, 404), ("PUT", KEY, 200)]
    assert cost(lambda: first.claim(leader)) == probing + claiming
    assert cost(lambda: first.claim(leader)) == [("GET", KEY, 200)]
    assert cost(lambda: first.replace(leader, b"1")) == [("PUT", KEY, 200)]
    assert cost(lambda: first.read(leader)) == [("GET", KEY, 200)]
    assert cost(lambda: first.replace(leader, b"2")) == [("PUT", KEY, 200)]
    claimed_elsewhere = [*probing[1:], ("GET", KEY, 200)]
    assert cost(lambda: second.claim(leader)) == claimed_elsewhere
    assert cost(lambda: second.replace(leader, b"3")) == [("PUT", KEY, 200)]
    assert cost(lambda: bench.fence().replace(leader, b"4")) == [
        ("GET", KEY, 200),
        ("PUT", KEY, 200),
    ]
    assert cost(second.status) == [("GET", KEY, 200)]


# --- data --------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n", b"a\nb\n", bytes(range(256)), b"x" * 100_000])
def test_any_bytes_come_back_as_they_were(fence: S3Fence, leader: FakeBearer, data: bytes) -> None:
    assert fence.read(leader) == b""
    fence.replace(leader, data)
    assert fence.read(leader) == data


def test_a_claim_keeps_the_data(bench: S3Bench, fence: S3Fence, leader: FakeBearer) -> None:
    fence.replace(leader, b"from the old one")
    new = make_bearer(6)
    bench.fence().claim(new)
    assert bench.fence().read(new) == b"from the old one"


def test_h51_nothing_is_read_without_a_claim(
    bench: S3Bench, fence: S3Fence, leader: FakeBearer
) -> None:
    fence.replace(leader, b"old")
    with pytest.raises(Unclaimed):
        bench.fence().read(make_bearer(6))
    with pytest.raises(Fenced):
        bench.fence().read(make_bearer(4))


def test_a_bare_token_claims_by_its_first_read(bench: S3Bench, fence: S3Fence) -> None:
    assert bench.fence().read(make_token(6)) == b""
    assert marked(fence) == make_token(6)


def test_a_version_that_is_put_back_is_told(
    bench: S3Bench, fence: S3Fence, leader: FakeBearer
) -> None:
    old = bench.body()
    new = make_bearer(6)
    fence.claim(new)
    bench.put(old)
    with pytest.raises(FenceStateLost):
        bench.write(fence, new, "on an older state")


# --- objects and stores that are not as they must be -------------------------------------------


@pytest.mark.parametrize("body", [b"", b"{}", b"data", b'{"format": "zkelect-manifest-1"}\n'])
def test_h63_an_object_that_is_no_manifest_is_left_alone(
    bench: S3Bench, leader: FakeBearer, body: bytes
) -> None:
    bench.put(body)
    fence = bench.fence()
    for call in (fence.status, lambda: fence.claim(leader)):
        with pytest.raises(UnfitStore, match="no manifest"):
            call()
    assert bench.body() == body


def test_h63_a_manifest_of_another_domain_is_left_alone(
    bench: S3Bench, fence: S3Fence, leader: FakeBearer
) -> None:
    with pytest.raises(DomainTaken, match="belongs to domain 'd'"):
        bench.fence(domain="e", key=KEY).claim(make_bearer(6))
    fence.replace(leader, b"undisturbed")


def test_a_bucket_that_is_not_there_is_told(bench: S3Bench, leader: FakeBearer) -> None:
    fence = S3Fence(bucket="not-there", key=KEY, domain="d", **bench.options)
    for call in (fence.status, lambda: fence.claim(leader)):
        with pytest.raises(RequestFailed, match="NoSuchBucket"):
            call()
    assert leader.ends == []


def test_h58_a_store_that_knows_no_conditions_is_refused(
    bench: S3Bench, server: Moto, leader: FakeBearer
) -> None:
    server.faulty = PROBE
    server.faults.append(Fault(made=False, status=501))
    with pytest.raises(UnfitStore, match="not implemented"):
        bench.fence().claim(leader)
    assert bench.fence().status() is None


def test_a_server_that_is_not_there_is_told(leader: FakeBearer) -> None:
    port = Port()
    url = f"http://{port.address}"
    credentials = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    fence = S3Fence(bucket="b", key="k", domain="d", endpoint_url=url, timeout=2.0, **credentials)
    for call in (fence.status, lambda: fence.claim(leader)):
        with pytest.raises(RequestFailed, match="s3://b/k"):
            call()
    port.release()


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("bucket", ""),
        ("bucket", "s3://b/k"),
        ("bucket", None),
        ("key", ""),
        ("key", "k" * 1001),
        ("key", "ä" * 501),
        ("key", "a\nb"),
        ("key", None),
        ("endpoint_url", "ftp://host"),
        ("endpoint_url", "host:9000"),
        ("endpoint_url", "http://no address"),
        ("use_ssll", True),
    ],
)
def test_h63_a_bad_argument_is_refused(argument: str, value: Any) -> None:
    given: dict[str, Any] = {"bucket": "b", "key": "k", "domain": "d"}
    given[argument] = value
    with pytest.raises(InvalidArgument, match=argument):
        S3Fence(**given)


@pytest.mark.parametrize("data", ["text", None, 5])
def test_data_are_bytes(server: Moto, fence: S3Fence, leader: FakeBearer, data: Any) -> None:
    with pytest.raises(InvalidArgument, match="data"):
        fence.replace(leader, data)
    assert server.asked == []


# --- the manifest's form -----------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xff\x00"])
def test_a_manifest_reads_what_it_writes(data: bytes) -> None:
    mark = Mark(token=make_token(5), election="/elections/größe", holder="host\na")
    manifest = Manifest(domain="d", write="w", data_write="v", mark=mark, data=data)
    assert Manifest.parse(manifest.encode()) == manifest


def test_another_version_of_the_form_is_not_guessed() -> None:
    written = Manifest(
        domain="d", write="w", data_write="v", mark=Mark(token=make_token(5)), data=b""
    )
    with pytest.raises(InvalidArgument, match="manifest"):
        Manifest.parse(written.encode().replace(b"manifest-1", b"manifest-2"))


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[" * 100_000, b'{"format": 1}', b"\xff", b"5", b"{}\n{}"]
)
def test_another_form_is_not_guessed(body: bytes) -> None:
    with pytest.raises(InvalidArgument, match="manifest"):
        Manifest.parse(body)
