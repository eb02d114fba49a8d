"""One file that only the present leader replaces."""

from __future__ import annotations

import os
import re
import stat
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zkelect.errors import (
    DomainTaken,
    FenceStateLost,
    InvalidArgument,
    Refused,
    RequestFailed,
    StoreBusy,
    UnfitStore,
)
from zkelect.stores.fence import Claimant, Gate, patience, present, valid_timeout
from zkelect.stores.flock import Busy, Lock, locked
from zkelect.stores.folder import Folder
from zkelect.stores.locks import lockers, told
from zkelect.stores.mark import Mark
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FileFence"]

_LONGEST_NAME: Final = 180  # bytes; the drafts' names add up to 75, and 255 is the systems' limit
_NETWORK: Final = {"9p", "afs", "cifs", "fuse.sshfs", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}


class FileFence:
    """A file that is replaced as a whole, by the present leader only.

    Promises: the mark is checked under the lock under which the file is replaced, so a refused
    leader writes nothing, and no file of an older token follows a claim. Whoever opens the file
    finds the old one or the new one, whole. A claim and a replacement are durable when they
    return, and the mark always first: after a kill or a power cut the mark is never behind the
    file, and a claim makes durable what it found, so that no older file comes back under a
    newer mark. Owner, mode, ACL and user attributes of the file are kept.

    Does not promise: to interrupt a writer that hangs (the claim raises StoreBusy and names its
    process: end it; a killed one holds nothing); to guard a program that opens the file and
    writes into it; anything on a network file system (refused, where the system tells), nor on
    a disk that says "written" before it is.

    Beside the file ``f`` lie ``.f.zkelect-lock`` and ``.f.zkelect-mark``. The lock is never
    replaced. If somebody does it all the same, two could hold "the" lock; so its identity is
    kept with the mark, and until a claim with ``initialize=True`` all are refused,
    FenceStateLost. Who was about to write under the old lock loses its draft by that claim.

    Isolation: one at a time, across threads and processes, also for :meth:`read`. Who waits
    asks for the lock every millisecond; there is no queue. Other readers need no lock. Any
    thread and any process may use it, also after a fork.

    Cost: no round trip; two fsyncs for a replacement, five for a claim.

    :param path: the file; its folder must exist and be writable. A symbolic link is followed,
        once, here; other hard links to the file keep what was in it.
    :param domain: which election guards it: 1 to 255 printable characters; None: the file's
        name. A file has one domain, the first that is claimed.
    :param timeout: seconds to wait for the lock, more than 0, or the lease left if that is less.
    :raises InvalidArgument: an argument is outside its range; nothing was opened.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, domain: str | None = None, timeout: float = 5.0
    ) -> None:
        self._path = _valid_path(path)
        self._name = self._path.name
        self._timeout = valid_timeout(timeout)
        self._gate = Gate(
            store=f"file:{self._path}",
            domain=self._name if domain is None else domain,
            lock=threading.Lock(),
        )
        self._beside = f".{self._name}.zkelect-"
        self._lock_name, self._mark_name = f"{self._beside}lock", f"{self._beside}mark"
        self._drafts = re.compile(rf"{re.escape(self._beside)}[0-9a-f]{{32}}-\d+-draft")

    def claim(self, claimant: Claimant, *, initialize: bool = False) -> None:
        """Raise the mark to the claimant's token: once per term, before its first read.

        Idempotent: a claim of unknown outcome is made again with the same token.

        :param initialize: the data have been looked at: go on with a lock file that is new.
        :raises Lost: the lease was over or suspended, before or meanwhile; nothing was written.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no; UnfitStore: the file
            cannot be replaced as promised; or StoreBusy.
        :raises RequestFailed: the system could not; its error is the ``__cause__``.
        """
        with self._told("claim", claimant), self._alone(claimant, create=True) as (folder, lock):
            self._inspect(folder, claimant)
            self._shun_networks(folder, claimant)
            mark = self._gate.claim(
                self._mark(folder, claimant),
                claimant,
                origin=_origin(lock),
                initialize=initialize,
            )
            folder.remove(self._drafts)  # of who died, or holds a lock that was replaced
            lock.sync()
            if folder.stat(self._name) is not None:
                folder.sync(self._name)
            folder.sync()
            text = f"{self._gate.domain}\n{mark}\n".encode()
            self._replace(folder, lock, claimant, self._mark_name, text)
        self._gate.confirm(mark)

    def replace(self, claimant: Claimant, data: bytes | bytearray | memoryview) -> None:
        """Replace the file by one with these bytes, or make it.

        With a bare token, its first call makes the claim.

        :raises Lost: the lease was over or suspended, before or at the end; nothing was written.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no, or StoreBusy.
        :raises RequestFailed: the system could not; its error is the ``__cause__``. After a
            failed "sync" of the folder the file is replaced, but a power cut may undo it.
        """
        content = _valid_data(data)
        with self._guarded("replace", claimant) as (folder, lock):
            self._replace(folder, lock, claimant, self._name, content)

    def read(self, claimant: Claimant) -> bytes | None:
        """Return what is in the file, None without one; checked as a write is.

        :raises Lost, Refused, RequestFailed: as :meth:`replace` does.
        """
        with self._guarded("read", claimant) as (folder, _):
            return folder.read(self._name)

    def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed; creates nothing, waits for nobody.

        :raises DomainTaken: the file belongs to another domain.
        :raises RequestFailed: the system could not; its error is the ``__cause__``.
        """
        if not self._path.parent.exists():
            return None
        with self._told("status", None), closing(Folder(self._path.parent)) as folder:
            return self._mark(folder, None)

    # --- within ------------------------------------------------------------------------------

    @contextmanager
    def _guarded(self, request: str, claimant: Claimant) -> Iterator[tuple[Folder, Lock]]:
        if isinstance(claimant, Token) and claimant != self._gate.floor:
            self.claim(claimant)
        with self._told(request, claimant), self._alone(claimant) as (folder, lock):
            self._gate.guard(self._mark(folder, claimant), claimant, origin=_origin(lock))
            self._inspect(folder, claimant)
            yield folder, lock

    @contextmanager
    def _alone(self, claimant: Claimant, *, create: bool = False) -> Iterator[tuple[Folder, Lock]]:
        present(claimant)
        seconds = patience(claimant, self._timeout)
        with closing(Folder(self._path.parent)) as folder:
            if not create and folder.stat(self._lock_name) is None:
                self._gate.guard(self._mark(folder, claimant), claimant)
            with locked(folder, self._lock_name, seconds=seconds, create=create) as lock:
                yield folder, lock

    def _replace(
        self, folder: Folder, lock: Lock, claimant: Claimant, name: str, data: bytes
    ) -> None:
        """The draft's name tells under which lock it was made, so the next one can end it."""

        def last() -> None:
            present(claimant)
            if not lock.intact:
                raise self._replaced(claimant)

        draft = f"{self._beside}{lock.identity}-{lock.number}-draft"
        try:
            folder.replace(name, data, draft=draft, alike=name == self._name, last=last)
        except FileNotFoundError as error:
            if lock.intact:
                raise
            raise self._replaced(claimant) from error

    def _replaced(self, claimant: Claimant) -> Refused:
        detail = f"somebody has replaced the lock file {self._lock_name} meanwhile"
        return self._gate.refuse(FenceStateLost, claimant, detail)

    def _mark(self, folder: Folder, claimant: Claimant | None) -> Mark | None:
        content = folder.read(self._mark_name)
        if content is None:
            return None
        domain, _, text = content.decode("utf-8", "backslashreplace").partition("\n")
        try:
            mark = Mark.parse(text)
        except InvalidArgument as error:
            raise RequestFailed(str(self._path), "reading the mark", str(error)) from error
        if domain != self._gate.domain:
            raise DomainTaken(
                store=self._gate.store,
                domain=self._gate.domain,
                token=None if claimant is None else _token_of(claimant),
                mark=mark.token,
                holder=mark.holder,
                detail=f"the file belongs to the domain {domain!r}",
            )
        return mark

    def _inspect(self, folder: Folder, claimant: Claimant) -> None:
        """Look whether the file can be replaced by one like it."""
        found = folder.stat(self._name)
        if found is None:
            return
        if not stat.S_ISREG(found.st_mode):
            raise self._gate.refuse(UnfitStore, claimant, "there is something, but no plain file")
        if not _can_be_ours(found):
            owner = f"user {found.st_uid} and group {found.st_gid}"
            detail = f"it belongs to {owner}; user {os.geteuid()} cannot make one that does"
            raise self._gate.refuse(UnfitStore, claimant, detail)

    def _shun_networks(self, folder: Folder, claimant: Claimant) -> None:
        kind = _file_system(folder.path)
        if kind in _NETWORK:
            detail = f"{folder.path} is on {kind}: a lock there is lost with the link, untold"
            raise self._gate.refuse(UnfitStore, claimant, detail)

    @contextmanager
    def _told(self, request: str, claimant: Claimant | None) -> Iterator[None]:
        try:
            yield
        except Busy as busy:
            assert claimant is not None  # status() waits for nobody
            who = told(lockers(self._path.parent / self._lock_name, "FLOCK", "WRITE"))
            detail = f"{request} waited {busy.seconds:g} s for {who}"
            raise self._gate.refuse(StoreBusy, claimant, detail) from busy
        except OSError as error:
            raise RequestFailed(str(self._path), request, str(error)) from error


def _origin(lock: Lock) -> str:
    return f"lock file {lock.identity}"


def _token_of(claimant: Claimant) -> Token:
    return claimant if isinstance(claimant, Token) else claimant.token


def _can_be_ours(found: os.stat_result) -> bool:
    """Whether a new file of ours can have the owner and the group of this one."""
    user = os.geteuid()
    groups = {os.getegid(), *os.getgroups()}
    return user == 0 or (found.st_uid == user and found.st_gid in groups)


def _file_system(path: Path) -> str:
    """Return the type of file system, as far as the system tells (proc(5), mountinfo)."""
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    mounts = (line.partition(" - ") for line in lines if line.split()[2] == number)
    return next((about.split()[0] for _, _, about in mounts), "")


def _valid_path(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or "\0" in name:
        raise InvalidArgument("path", path, "the name of a file")
    found = Path(os.path.realpath(name))
    if not name or not 1 <= len(os.fsencode(found.name)) <= _LONGEST_NAME:
        raise InvalidArgument("path", path, f"a file's name of 1 to {_LONGEST_NAME} bytes")
    return found


def _valid_data(data: bytes | bytearray | memoryview) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidArgument("data", data, "bytes; encode text first")
    return bytes(data)
