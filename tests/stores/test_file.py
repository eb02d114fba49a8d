"""What only the file store has: a file and what it is like, its lock, and processes."""

from __future__ import annotations

import errno
import os
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stores.benches import marked
from stores.conftest import Writer, starting
from stores.file_bench import FileBench

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
from zkelect.stores.file import FileFence
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stores.bearers import FakeBearer

    MakeToken = Callable[..., Token]
    MakeBearer = Callable[..., FakeBearer]
    StartWriter = Callable[..., Writer]

WRITER = Path(__file__).with_name("file_writer.py")
WITHIN = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "current.json"


@pytest.fixture
def leader(bearer: MakeBearer) -> FakeBearer:
    return bearer(5)


@pytest.fixture
def fence(path: Path, leader: FakeBearer) -> FileFence:
    """A claimed fence."""
    fence = FileFence(path, timeout=WITHIN)
    fence.claim(leader)
    return fence


def beside(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.zkelect-{what}")


def drafts(path: Path) -> list[str]:
    return [file.name for file in path.parent.iterdir() if file.name.endswith("-draft")]


class Stop:
    """Holds a thread before its next rename."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._rename, self._held = os.rename, threading.Lock()
        monkeypatch.setattr(os, "rename", self.rename)

    def rename(self, *arguments: Any, **options: Any) -> None:
        if self._held.acquire(blocking=False):
            self.reached.set()
            assert self.go_on.wait(WITHIN)
        self._rename(*arguments, **options)


@pytest.fixture
def zombie(
    fence: FileFence, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], BaseException | None]]:
    """The leader replaces the file, and is held at the last step; call it to let it go on."""
    stop = Stop(monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(fence.replace, leader, b"from the past")
        assert stop.reached.wait(WITHIN)

        def end() -> BaseException | None:
            stop.go_on.set()
            return done.exception(WITHIN)

        yield end
        stop.go_on.set()


# --- the file --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "/", "a\0b", b"current.json", 5, None, "x" * 181])
def test_what_names_no_file_is_refused(name: Any) -> None:
    with pytest.raises(InvalidArgument, match="path"):
        FileFence(name)


def test_the_longest_name_passes(tmp_path: Path, leader: FakeBearer) -> None:
    fence = FileFence(tmp_path / ("x" * 180))
    fence.claim(leader)
    fence.replace(leader, b"new")
    assert fence.read(leader) == b"new"


def test_the_domain_is_the_file_s_name_if_none_is_given(
    path: Path, fence: FileFence, leader: FakeBearer
) -> None:
    FileFence(path, domain="current.json").replace(leader, b"")
    with pytest.raises(DomainTaken, match=r"'current\.json'") as caught:
        FileFence(path, domain="other").claim(leader)
    assert (caught.value.domain, caught.value.mark) == ("other", leader.token)
    with pytest.raises(DomainTaken):
        FileFence(path, domain="other").status()


def test_bad_arguments_and_questions_create_nothing(
    path: Path, leader: FakeBearer, token: MakeToken
) -> None:
    fence = FileFence(path)
    assert fence.status() is None
    assert FileFence(path.parent / "none" / "f").status() is None
    with pytest.raises(Unclaimed):
        fence.replace(leader, b"")
    with pytest.raises(Unclaimed):
        fence.read(leader)
    for text in ("text", None, 5):
        with pytest.raises(InvalidArgument, match="data"):
            fence.replace(token(5), text)  # type: ignore[arg-type]  # that is the test
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"{}", bytearray(b"[]"), memoryview(b"1"), b"x" * 3_000_000])
def test_what_is_written_is_read(
    path: Path, fence: FileFence, leader: FakeBearer, data: bytes
) -> None:
    assert fence.read(leader) is None
    fence.replace(leader, data)
    assert fence.read(leader) == path.read_bytes() == bytes(data)


def test_h51_a_stale_leader_cannot_read(
    path: Path, fence: FileFence, leader: FakeBearer, bearer: MakeBearer
) -> None:
    fence.replace(leader, b"old")
    with pytest.raises(Unclaimed):
        fence.read(bearer(6))
    FileFence(path).claim(bearer(6))
    with pytest.raises(Fenced):
        fence.read(leader)


def test_a_replacement_that_outlives_its_lease_writes_nothing(
    path: Path, fence: FileFence, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence.replace(leader, b"old")

    def slow(_: int) -> None:
        leader.lease = 0.0

    monkeypatch.setattr(os, "fsync", slow)
    with pytest.raises(LeadershipLost):
        fence.replace(leader, b"new")
    assert (path.read_bytes(), drafts(path)) == (b"old", [])


def test_a_path_is_fixed_when_the_fence_is_made(
    tmp_path: Path, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    fence = FileFence("odd ?#% name [*]")
    monkeypatch.chdir(tmp_path)
    fence.claim(leader)
    fence.replace(leader, b"here")
    assert (tmp_path / "a" / "odd ?#% name [*]").read_bytes() == b"here"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_two_ways_to_one_file_are_one_store(
    tmp_path: Path, path: Path, fence: FileFence, leader: FakeBearer, bearer: MakeBearer
) -> None:
    (tmp_path / "link").symlink_to("current.json")
    (tmp_path / "folder").symlink_to(tmp_path)
    FileFence(tmp_path / "folder" / "link").claim(bearer(6))
    with pytest.raises(Fenced):
        fence.replace(leader, b"stale")
    FileFence(tmp_path / "link").replace(bearer(6), b"new")
    assert (tmp_path / "link").is_symlink()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_h63_what_is_no_plain_file_is_refused_at_the_claim(
    path: Path, leader: FakeBearer, kind: str
) -> None:
    fence = FileFence(path)
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to("elsewhere")
        case _:
            os.mkfifo(path)
    with pytest.raises(UnfitStore, match="no plain file"):
        fence.claim(leader)
    assert (fence.status(), leader.ends) == (None, [])


MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 {device} / / rw,relatime shared:1 - {kind} server:/export rw
"""


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_h63_a_network_file_system_is_refused_at_the_claim(
    path: Path, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    number = path.parent.stat().st_dev
    mounts = MOUNTS.format(device=f"{os.major(number)}:{os.minor(number)}", kind=kind)
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: mounts)
    with pytest.raises(UnfitStore, match=f"is on {kind}"):
        FileFence(path).claim(leader)
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: mounts.replace(kind, "xfs"))
    FileFence(path).claim(leader)


# --- what it is like ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o4755, 0o666])
def test_owner_and_mode_are_kept(path: Path, leader: FakeBearer, mode: int) -> None:
    path.write_bytes(b"old")
    if os.geteuid() == 0:
        os.chown(path, 1234, 5678)
    path.chmod(mode)
    before = path.stat()
    fence = FileFence(path)
    fence.claim(leader)
    fence.replace(leader, b"new")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino


def test_a_new_file_is_made_as_any_other(path: Path, fence: FileFence, leader: FakeBearer) -> None:
    umask = os.umask(0o027)
    try:
        fence.replace(leader, b"new")
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o7777 == 0o640


def test_the_draft_of_a_private_file_is_private_from_the_first(
    path: Path, fence: FileFence, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch(mode=0o600)
    modes, change = [], os.fchmod

    def watched(descriptor: int, mode: int) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o7777)
        change(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", watched)
    fence.replace(leader, b"secret")
    assert modes == [0o600]


# Version 2; user::rw-, user:1234:r--, group::---, mask::r--, other::--- (acl(5), Linux's form)
ENTRIES = ((1, 6, -1), (2, 4, 1234), (4, 0, -1), (16, 4, -1), (32, 0, -1))
ACL = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in ENTRIES)


def test_acl_and_user_attributes_are_kept(path: Path, fence: FileFence, leader: FakeBearer) -> None:
    path.touch()
    kept = {"user.origin": b"here", "system.posix_acl_access": ACL}
    for name, value in kept.items():
        os.setxattr(path, name, value)
    fence.replace(leader, b"new")
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == kept


def test_what_the_folder_gives_to_new_files_does_not_open_an_old_one(
    path: Path, fence: FileFence, leader: FakeBearer
) -> None:
    path.touch(mode=0o600)
    os.setxattr(path.parent, "system.posix_acl_default", ACL)
    fence.replace(leader, b"secret")
    assert os.listxattr(path) == []
    assert path.stat().st_mode & 0o7777 == 0o600


def test_a_file_system_without_attributes_is_fit(
    path: Path, fence: FileFence, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: Any) -> list[str]:
        raise OSError(errno.ENOTSUP, "no attributes here")

    path.touch()
    monkeypatch.setattr(os, "listxattr", unsupported)
    fence.replace(leader, b"new")
    assert path.read_bytes() == b"new"


def test_h63_an_owner_that_could_not_be_kept_is_told_at_the_claim(
    path: Path, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch()
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(UnfitStore, match=r"it belongs to user \d+ and group \d+; user \d+ cannot"):
        FileFence(path).claim(leader)


# --- H57: the lock, and who held it before -----------------------------------------------------


def test_h57_a_lock_file_that_was_replaced_is_told_until_somebody_has_looked(
    path: Path, fence: FileFence, leader: FakeBearer, bearer: MakeBearer
) -> None:
    fence.replace(leader, b"old")
    beside(path, "lock").unlink()
    for _ in range(2):
        with pytest.raises(FenceStateLost, match="made on lock file"):
            fence.replace(leader, b"without a lock")
        with pytest.raises(FenceStateLost, match="made on lock file"):
            FileFence(path).claim(bearer(6))
    FileFence(path).claim(bearer(6), initialize=True)
    FileFence(path).replace(bearer(6), b"new")
    assert (path.read_bytes(), leader.ends) == (b"new", [])


@pytest.mark.parametrize("copied", [False, True])
def test_h57_who_holds_a_lock_that_was_replaced_writes_nothing(
    path: Path,
    fence: FileFence,
    bearer: MakeBearer,
    zombie: Callable[[], BaseException | None],
    copied: bool,
) -> None:
    """Frozen after its last look at the lock: the claim under the new one takes its draft away."""
    lock = beside(path, "lock")
    content = lock.read_bytes()
    lock.unlink()
    if copied:  # as by a restore: another file that says it is the same
        lock.write_bytes(content)
    FileFence(path).claim(bearer(6), initialize=True)
    assert isinstance(zombie(), FenceStateLost)
    assert (path.exists(), drafts(path), marked(fence)) == (False, [], bearer(6).token)


def test_h57_control_a_draft_that_is_left_to_the_zombie_replaces_a_newer_file(
    path: Path,
    bearer: MakeBearer,
    zombie: Callable[[], BaseException | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What that claim takes the drafts away for."""
    monkeypatch.setattr("zkelect.stores.folder.Folder.remove", lambda *_: None)
    beside(path, "lock").unlink()
    FileFence(path).claim(bearer(6), initialize=True)
    FileFence(path).replace(bearer(6), b"new")
    assert zombie() is None
    assert path.read_bytes() == b"from the past"


def test_h57_nor_does_it_take_the_draft_of_who_writes_under_the_copied_lock(
    path: Path,
    bearer: MakeBearer,
    zombie: Callable[[], BaseException | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = beside(path, "lock")
    content = lock.read_bytes()
    lock.unlink()
    lock.write_bytes(content)
    FileFence(path).claim(bearer(6))
    stop = Stop(monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(FileFence(path).replace, bearer(6), b"new")
        assert stop.reached.wait(WITHIN)
        ended = zombie()
        stop.go_on.set()
        done.result(WITHIN)
    assert isinstance(ended, FenceStateLost)
    assert path.read_bytes() == b"new"


def test_h57_a_lock_replaced_before_the_last_look_is_seen_there(
    path: Path, fence: FileFence, leader: FakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def replace_lock(descriptor: int) -> None:
        beside(path, "lock").unlink(missing_ok=True)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", replace_lock)
    with pytest.raises(FenceStateLost, match="replaced the lock file"):
        fence.replace(leader, b"new")
    assert (path.exists(), drafts(path)) == (False, [])


def test_h57_who_locks_a_file_that_lost_its_name_meanwhile_locks_again(
    path: Path, bearer: MakeBearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The present lock is asked for, not the one that was opened."""
    import fcntl

    lock, flock, opened = beside(path, "lock"), fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        opened.append(os.fstat(descriptor).st_ino)
        if len(opened) == 1:
            lock.rename(lock.with_suffix(".old"))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    FileFence(path).claim(bearer(5))
    assert opened[-1] == lock.stat().st_ino != opened[0]


def test_h57_a_zombie_s_open_descriptor_reaches_no_newer_file(
    path: Path, fence: FileFence, leader: FakeBearer, bearer: MakeBearer
) -> None:
    fence.replace(leader, b"old")
    with path.open("r+b") as zombie:
        fence.claim(bearer(6))
        fence.replace(bearer(6), b"new")
        zombie.write(b"stale")
    assert path.read_bytes() == b"new"


def test_h57_drafts_of_the_dead_are_removed_by_a_claim_and_no_other_file(
    path: Path, fence: FileFence, bearer: MakeBearer
) -> None:
    left = beside(path, f"{'0' * 32}-12-draft")
    others = [
        path.with_name(f".{path.name}.zkelect-x.zkelect-{'0' * 32}-12-draft"),
        path.with_name(f"{path.name}-draft"),
    ]
    for file in (left, *others):
        file.touch()
    fence.claim(bearer(6))
    assert not left.exists()
    assert all(file.exists() for file in others)


def test_a_draft_of_our_own_term_that_was_left_is_in_nobody_s_way(
    path: Path, fence: FileFence, leader: FakeBearer
) -> None:
    lock = beside(path, "lock")
    identity = lock.read_text("utf-8").partition("\n")[0]
    left = beside(path, f"{identity}-{lock.stat().st_ino}-draft")
    left.write_bytes(b"half of")
    fence.replace(leader, b"new")
    assert (path.read_bytes(), drafts(path)) == (b"new", [])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_hold_the_lock_on(
    path: Path, bearer: MakeBearer, zombie: Callable[[], BaseException | None]
) -> None:
    asked, answer = os.pipe()
    told, born = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(answer)
        os.write(born, b"!")
        os.read(asked, 1)
        os._exit(0)
    try:
        assert os.read(told, 1)
        assert zombie() is None
        FileFence(path, timeout=0.01).claim(bearer(6))
    finally:
        for end in (answer, asked, told, born):
            os.close(end)
        os.waitpid(child, 0)


# --- what the system could not do ----------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_a_failure_at_any_step_is_told_and_leaves_the_old_file(
    path: Path,
    fence: FileFence,
    leader: FakeBearer,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    code: int,
) -> None:
    fence.replace(leader, b"old")
    real = getattr(os, call)

    def fail(*arguments: Any, **options: Any) -> Any:
        if call == "open" and not str(arguments[0]).endswith("-draft"):
            return real(*arguments, **options)
        raise OSError(code, "made up")

    with monkeypatch.context() as failing:
        failing.setattr(os, call, fail)
        with pytest.raises(RequestFailed, match=r"replace failed: .*made up") as caught:
            fence.replace(leader, b"new")
    assert isinstance(caught.value.__cause__, OSError)
    assert (path.read_bytes(), drafts(path), leader.ends) == (b"old", [], [])
    fence.replace(leader, b"new")
    assert path.read_bytes() == b"new"


def test_a_folder_that_is_missing(tmp_path: Path, leader: FakeBearer) -> None:
    with pytest.raises(RequestFailed, match="No such file"):
        FileFence(tmp_path / "none" / "current.json").claim(leader)


@pytest.mark.parametrize("content", [b"", b"current.json\n", b"current.json\n{}", b"\xff\xfe"])
def test_a_mark_that_is_none_is_told(path: Path, fence: FileFence, content: bytes) -> None:
    beside(path, "mark").write_bytes(content)
    with pytest.raises(RequestFailed, match="reading the mark"):
        fence.status()


# --- processes ---------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> FileBench:
    return FileBench(tmp_path)


@pytest.fixture
def writer(bench: FileBench) -> Iterator[StartWriter]:
    """Start a process that leads with this token and replaces the bench's file."""
    with starting(bench.path, WRITER) as start:
        yield start


def test_h52_a_busy_store_names_the_process_that_holds_it(
    bench: FileBench, token: MakeToken, bearer: MakeBearer, writer: StartWriter
) -> None:
    holding = writer(token(5))
    assert holding.does("hold") == "holding"
    with pytest.raises(StoreBusy, match=rf"waited 0\.01 s for process {holding.pid}\.") as caught:
        bench.fence(timeout=0.01).claim(bearer(6))
    assert caught.value.token == bearer(6).token
    with pytest.raises(StoreBusy, match=r"waited 0\.02 s"):
        bench.fence().claim(bearer(6, lease=0.02))
    assert holding.does("go on") == "appended"
    assert [entry for _, entry in bench.log()] == ["held"]


def test_h52_this_process_is_named_as_such(
    path: Path, bearer: MakeBearer, zombie: Callable[[], BaseException | None]
) -> None:
    with pytest.raises(StoreBusy, match=rf"process {os.getpid()} \(this one\)"):
        FileFence(path, timeout=0.01).claim(bearer(6))
    assert zombie() is None
    assert path.read_bytes() == b"from the past"


def test_h52_a_claim_waits_for_the_replacement_under_way(
    path: Path,
    fence: FileFence,
    leader: FakeBearer,
    bearer: MakeBearer,
    zombie: Callable[[], BaseException | None],
) -> None:
    with ThreadPoolExecutor(1) as pool:
        claim = pool.submit(FileFence(path, timeout=WITHIN).claim, bearer(6))
        assert zombie() is None
        claim.result(WITHIN)
    with pytest.raises(Fenced):
        fence.replace(leader, b"next")
    assert path.read_bytes() == b"from the past"


def test_h52_a_dead_holder_is_in_nobody_s_way(
    bench: FileBench, token: MakeToken, bearer: MakeBearer, writer: StartWriter
) -> None:
    holding = writer(token(5))
    assert holding.does("hold") == "holding"
    holding.kill()
    bench.fence(timeout=0.01).claim(bearer(6))
    assert (bench.log(), drafts(bench.path)) == ([], [])


def falls(bench: FileBench) -> bool:
    """Whether the log shows a token after a higher one."""
    tokens = [token for token, _ in bench.log()]
    return tokens != sorted(tokens)


def take_over(old: Writer, new: Writer, entries: int = 20) -> None:
    """Let the new leader claim and write while the old one writes as fast as it can."""
    assert old.does("claim") == "claimed"
    old.order("hammer")
    assert [old.answer() for _ in range(entries)] == ["appended"] * entries
    assert new.does("claim") == "claimed"
    assert [new.does("append") for _ in range(entries)] == ["appended"] * entries


def test_h50_of_two_processes_that_hammer_the_old_one_never_writes_after_the_claim(
    bench: FileBench, token: MakeToken, writer: StartWriter
) -> None:
    old, new = writer(token(5)), writer(token(6))
    take_over(old, new)
    assert next(answer for answer in iter(old.answer, "") if answer != "appended") == "Fenced"
    assert not falls(bench)
    assert [written for written, _ in bench.log()].count(token(6)) == 20


def test_control_without_the_guard_a_stale_writer_is_found(
    bench: FileBench, token: MakeToken, writer: StartWriter
) -> None:
    old, new = writer(token(5), "--unguarded"), writer(token(6))
    assert old.does("claim") == "claimed"
    assert new.does("claim") == "claimed"
    assert new.does("append") == "appended"
    assert old.does("append") == "appended"
    assert falls(bench)
