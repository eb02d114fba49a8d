"""Guarded stores by URL; what is shown of a URL never has its password."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs
import click

from zkelect.errors import InvalidArgument

if TYPE_CHECKING:
    from zkelect.stores import Mark

__all__ = ["Question", "is_secret", "opened", "shown"]


class Marked(Protocol):
    """A guarded store whose mark can be asked."""

    def status(self) -> Mark | None:
        """Return the mark, or None if nobody has claimed."""


@attrs.frozen(kw_only=True)
class Question:
    """What is asked of each store: a domain's mark.

    :ivar timeout: seconds to wait for the store. :ivar schema: of the table, in SQL.
    """

    domain: str
    timeout: float
    schema: str | None = None


_Opener = Callable[[str, Question], Iterator[Marked]]


@attrs.frozen
class _Kind:
    """One kind of store. :ivar extra: what pip needs for it; :ivar open: lends one."""

    schemes: tuple[str, ...]
    form: str
    extra: str
    open: _Opener
    has_password: bool = True


@contextmanager
def opened(url: str, question: Question) -> Iterator[Marked]:
    """Lend the store at this URL; nothing is written, and nothing is made.

    :raises click.UsageError: it is no URL of ours, or a library is missing.
    :raises zkelect.ZkelectError: as the store does.
    """
    kind = _kind_of(url)
    if kind.has_password:
        _check_escaped(url)
    try:
        yield from kind.open(url, question)
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("zkelect"):
            raise
        raise click.UsageError(
            f"{shown(url)} needs {missing.name}, which is not installed: say {kind.form}, and "
            f"pip install 'zkelect[{kind.extra}]'"
        ) from missing


def shown(url: str) -> str:
    """Return the URL without user, password and options: those may hold secrets, too."""
    scheme, colon, rest = url.partition(":")
    kind = _find(scheme)
    if kind is None:
        return f"{scheme}:…" if colon else "…"
    if not kind.has_password:
        return url
    where = rest.removeprefix("//").rpartition("@")[2].partition("?")[0]
    return f"{scheme}://{where}"


def is_secret(url: str) -> bool:
    """Whether a password is in it, so that it must not be on a command line."""
    scheme, _, rest = url.partition(":")
    kind = _find(scheme)
    if kind is not None and not kind.has_password:
        return False
    user, at, _ = rest.removeprefix("//").rpartition("@")
    options = rest.partition("?")[2].lower()
    return bool(at and user.partition(":")[2]) or "pass" in options


def _kind_of(url: str) -> _Kind:
    scheme = url.partition(":")[0]
    kind = _find(scheme)
    if kind is None:
        forms = ", ".join(each.form for each in _KINDS)
        raise click.UsageError(f"{shown(url)} is no store that can be asked; there are {forms}")
    return kind


def _check_escaped(url: str) -> None:
    """A password that is cut at the wrong place would be part of the host, in every message."""
    user, at, _ = url.partition(":")[2].removeprefix("//").rpartition("@")
    if at and set(user) & set("@/?#"):
        raise click.UsageError(
            f"{shown(url)}: in its user or password, @ / ? # are written %40 %2F %3F %23"
        )


def _find(scheme: str) -> _Kind | None:
    name = scheme.partition("+")[0].lower()
    return next((kind for kind in _KINDS if name in kind.schemes), None)


# --- the kinds -----------------------------------------------------------------------------------


def _sql(url: str, question: Question) -> Iterator[Marked]:
    stores, sqlalchemy = import_module("zkelect.stores"), import_module("sqlalchemy")
    engine = _engine(sqlalchemy, url)
    try:
        yield stores.SqlFence(
            engine, domain=question.domain, timeout=question.timeout, schema=question.schema
        )
    finally:
        engine.dispose()


def _engine(sqlalchemy: Any, url: str) -> Any:
    try:
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    except (ValueError, sqlalchemy.exc.ArgumentError):  # its message may hold the URL
        raise _unreadable(url) from None
    if engine.dialect.is_async:
        raise click.UsageError(f"{shown(url)}: say {_kind_of(url).form}, whose driver can wait")
    return engine


def _unreadable(url: str) -> click.UsageError:
    return click.UsageError(f"{shown(url)} cannot be read: say {_kind_of(url).form}")


def _sqlite(url: str, question: Question) -> Iterator[Marked]:
    """The standard library reads the same table as SQLAlchemy would."""
    path = url.partition(":")[2].removeprefix("//").removeprefix("/").partition("?")[0]
    _require(url, path)
    yield import_module("zkelect.stores").SqliteFence(
        path, domain=question.domain, timeout=question.timeout
    )


def _file(url: str, question: Question) -> Iterator[Marked]:
    path = url.partition(":")[2]
    path = path.removeprefix("//") if path.startswith("///") else path
    _require(url, path)
    yield import_module("zkelect.stores").FileFence(
        path, domain=question.domain, timeout=question.timeout
    )


def _redis(url: str, question: Question) -> Iterator[Marked]:
    stores = import_module("zkelect.stores")
    try:
        fence = stores.RedisFence(url, domain=question.domain, timeout=question.timeout)
    except InvalidArgument as error:
        raise (_unreadable(url) if error.argument == "server" else error) from None
    try:
        yield fence
    finally:
        fence.close()


def _s3(url: str, question: Question) -> Iterator[Marked]:
    bucket, _, key = url.partition(":")[2].removeprefix("//").partition("/")
    yield import_module("zkelect.stores").S3Fence(
        bucket=bucket, key=key, domain=question.domain, timeout=question.timeout
    )


def _require(url: str, path: str) -> None:
    """A file that is not there is a mistake in the URL, as a rule: no store without a mark."""
    if not path or not Path(path).exists():
        raise click.UsageError(f"{shown(url)}: there is no such file")


_KINDS: Final = (
    _Kind(("postgresql",), "postgresql+psycopg://user@host/database", "postgres", _sql),
    _Kind(("mysql", "mariadb"), "mysql+pymysql://user@host/database", "mysql", _sql),
    _Kind(("sqlite",), "sqlite:////folder/file", "", _sqlite, has_password=False),
    _Kind(("redis", "rediss", "unix"), "redis://host:6379/0", "redis", _redis),
    _Kind(("file",), "file:/folder/file", "", _file, has_password=False),
    _Kind(("s3",), "s3://bucket/key", "s3", _s3, has_password=False),
)
