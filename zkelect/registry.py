"""Who is there, and what each of them says: small notes that go with their sessions."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from zkelect.errors import ConnectFailed, InvalidArgument, NameTaken
from zkelect.session.limits import check_timeout
from zkelect.session.reading import list_children, read_znode
from zkelect.session.registration import Note
from zkelect.session.session import Session
from zkelect.stores.znode import valid_path

__all__ = ["Registration", "Registry"]

_LARGEST: Final = 2**19
"""Bytes of a note: well below what a server takes in one request (jute.maxbuffer)."""


class Registry:
    """A folder of notes in ZooKeeper, one for each process that registers.

    ::

        registry = zkelect.Registry(session, "/services/billing")
        with registry.register("host-a", b"10.0.0.1:8080") as registration:
            ...
            registration.update(b"10.0.0.1:8081")

    A note is an ephemeral znode. It stays while its session lives, is made again in the next
    session when that one was lost, and goes when the registration is closed. It tells who is
    there, and nothing more: who acts on it needs an election, and a fence.

    :param path: absolute, below the session's chroot; made when missing.
    """

    def __init__(self, session: Session, path: str) -> None:
        self._session = session
        self._path: Final = valid_path(path)

    def register(self, name: str, data: bytes, *, timeout: float = 30.0) -> Registration:
        """Put up a note, and keep it there.

        A name that another session holds is waited for: that of a process that has died goes
        with its session.

        :param name: of the znode. :param data: at most 512 KiB.
        :param timeout: seconds to wait until it is there.
        :raises NameTaken: another session holds that name all the time.
        :raises PermissionDenied: an ACL is against it. :raises ConnectFailed: no answer came.
        """
        check_timeout(timeout, endless=False)
        path = valid_path(f"{'' if self._path == '/' else self._path}/{name}")
        if "/" in name:
            raise InvalidArgument("name", name, "the name of a znode, without a slash")
        registration = Registration(self._session, path, _checked(data))
        try:
            registration.wait(timeout)
        except BaseException:
            registration.close(timeout=0.0)
            raise
        return registration

    def entries(self, *, timeout: float = 10.0) -> dict[str, bytes]:
        """Read all notes, by name; a note that goes meanwhile is left out.

        :param timeout: seconds to wait for each answer.
        :raises PermissionDenied: an ACL is against it. :raises ConnectFailed: no answer came.
        """
        names = list_children(self._session, self._path, timeout) or ()
        parent = "" if self._path == "/" else self._path
        found = ((name, read_znode(self._session, f"{parent}/{name}", timeout)) for name in names)
        return {name: znode.data for name, znode in found if znode is not None}


class Registration:
    """A note of ours; from :meth:`Registry.register`. Any thread may use it."""

    def __init__(self, session: Session, path: str, data: bytes) -> None:
        self.path: Final = path
        self._session = session
        self._note = Note(session, path, data)
        session.ensure_usable()
        with session.lock:
            self._note.begin()

    def __enter__(self) -> Self:
        """Return itself: it is there already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the note down."""
        self.close()

    @property
    def settled(self) -> bool:
        """Whether the servers have it as it was said last, in the present session."""
        with self._session.lock:
            return self._session.connected and self._note.settled

    def update(self, data: bytes) -> None:
        """Have the note say this from now on, as soon as the link allows; waits for nothing.

        :raises SessionClosed: the session is.
        """
        checked = _checked(data)
        self._session.ensure_usable()
        with self._session.lock:
            self._note.write(checked)

    def wait(self, timeout: float) -> None:
        """Wait until the servers have it as it was said last.

        :param timeout: seconds, from 0.
        :raises NameTaken: another session holds that name.
        :raises PermissionDenied: an ACL is against it. :raises ConnectFailed: no answer came.
        """
        check_timeout(timeout, endless=False)
        self._session.ensure_usable()
        note = self._note
        with self._session.changed:
            self._session.changed.wait_for(
                lambda: note.settled or note.error is not None or self._session.ended, timeout
            )
            self._session.ensure_usable()
            if note.error is not None:
                raise note.error
            if note.taken:
                raise NameTaken(self.path)
            if not note.settled:
                raise ConnectFailed(self._session.hosts, timeout, {})

    def close(self, timeout: float = 1.0) -> None:
        """Take the note down; harmless when it is.

        :param timeout: seconds to wait for that; what is left then goes with the session.
        """
        check_timeout(timeout, endless=False)
        if self._session.foreign:
            return
        with self._session.changed:
            if not self._session.ended:
                self._note.write(None)
                self._session.changed.wait_for(lambda: self._note.settled, timeout)
            self._note.forget()


def _checked(data: bytes) -> bytes:
    if not isinstance(data, bytes):
        raise InvalidArgument("data", data, "bytes; encode text first")
    if len(data) > _LARGEST:
        raise InvalidArgument("data", f"{len(data)} bytes", f"at most {_LARGEST} bytes")
    return data
