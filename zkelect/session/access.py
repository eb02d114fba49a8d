"""Who we are and who may touch our znodes: credentials, TLS, ACLs."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

import attrs
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id

from zkelect.errors import InvalidArgument

__all__ = [
    "Digest",
    "Sasl",
    "Tls",
    "client_options",
    "format_entry",
    "parse_acl",
    "tls_context",
]

_PERMISSIONS: Final = {"r": 1, "w": 2, "c": 4, "d": 8, "a": 16}
_MECHANISMS: Final = {"DIGEST-MD5": ("puresasl",), "GSSAPI": ("puresasl", "kerberos")}
_SASL_EXTRA: Final = "pip install 'zkelect[sasl]', and for GSSAPI also kerberos"
_ACL_FORM: Final = "'scheme:id:permissions' as zkCli writes it, such as 'sasl:alice:cdrwa'"


@attrs.frozen(kw_only=True)
class Digest:
    """ZooKeeper's own user and password.

    The servers do not check it when it is given, only when a znode's ACL asks: a wrong
    password shows as PermissionDenied (Programmer's Guide, "Built-in ACL schemes").
    """

    user: str
    password: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Sasl:
    """SASL credentials; needs the extra ``zkelect[sasl]``.

    :param mechanism: 'DIGEST-MD5', with user and password, or 'GSSAPI', with a ticket.
    :param service: the servers' principal, for GSSAPI.
    :raises InvalidArgument: another mechanism, or something missing.
    """

    mechanism: str = "DIGEST-MD5"
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    service: str = "zookeeper"

    def __attrs_post_init__(self) -> None:
        """Refuse what could only fail, or let us in as nobody."""
        if self.mechanism not in _MECHANISMS:
            raise InvalidArgument("mechanism", self.mechanism, f"one of {sorted(_MECHANISMS)}")
        if self.mechanism == "DIGEST-MD5" and not (self.user and self.password):
            raise InvalidArgument("user", self.user, "DIGEST-MD5 needs a user and a password")


@attrs.frozen(kw_only=True)
class Tls:
    """An encrypted link whose server proves its name.

    :param ca: file of the authorities to trust; the system's when None.
    :param certfile: our own certificate, if the servers ask for one.
    :param check_hostname: turn off only where certificates carry no names.
    """

    ca: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    keyfile_password: str | None = attrs.field(default=None, repr=False)
    check_hostname: bool = True


def client_options(auth: Digest | Sasl | None) -> dict[str, Any]:
    """Return what a kazoo client must be told of our credentials.

    :raises InvalidArgument: it is none, or the extra for SASL is not installed.
    """
    if auth is None:
        return {}
    if not isinstance(auth, Digest | Sasl):
        raise InvalidArgument("auth", type(auth).__name__, "Digest(user=…, password=…), or a Sasl")
    if isinstance(auth, Digest):
        return {"auth_data": [("digest", f"{auth.user}:{auth.password}")]}
    for module in _MECHANISMS[auth.mechanism]:
        if find_spec(module) is None:
            raise InvalidArgument("auth", auth.mechanism, f"{module} is missing: {_SASL_EXTRA}")
    options = {"mechanism": auth.mechanism, "service": auth.service}
    if auth.user is not None:
        options |= {"username": auth.user, "password": auth.password or ""}
    return {"sasl_options": options}


def tls_context(tls: Tls | None) -> ssl.SSLContext | None:
    """Return how to make links secure; kazoo would trust more, and say less.

    :raises InvalidArgument: a file is missing or is not what it should be.
    """
    if tls is None:
        return None
    if not isinstance(tls, Tls):
        raise InvalidArgument("tls", tls, "a Tls, such as Tls(ca='ca.pem')")
    try:
        context = ssl.create_default_context(cafile=tls.ca)  # the system's only without a ca
    except OSError as error:
        form = f"a readable PEM file of authorities ({error})"
        raise InvalidArgument("ca", tls.ca, form) from error
    context.check_hostname = tls.check_hostname
    if tls.certfile is not None:
        _load_own(context, tls, tls.certfile)
    return context


def _load_own(context: ssl.SSLContext, tls: Tls, certfile: str) -> None:
    try:
        context.load_cert_chain(certfile, tls.keyfile, tls.keyfile_password or "")
    except OSError as error:
        raise InvalidArgument(
            "certfile",
            certfile,
            f"PEM files that belong together, certfile and keyfile={tls.keyfile!r}, and "
            f"keyfile_password if the key has one ({error})",
        ) from error


def parse_acl(acl: Sequence[str] | None, auth: Digest | Sasl | None) -> list[ACL]:
    """Return the ACL of every znode the library makes.

    :param acl: entries as ``scheme:id:permissions``; None: all to the creator when
        authenticated, otherwise open.
    """
    if acl is None:
        return list(OPEN_ACL_UNSAFE if auth is None else CREATOR_ALL_ACL)
    if isinstance(acl, str) or not isinstance(acl, Sequence) or not acl:
        raise InvalidArgument("acl", acl, f"a list of entries, each {_ACL_FORM}")
    return [_acl_entry(entry) for entry in acl]


def _acl_entry(entry: str) -> ACL:
    if not isinstance(entry, str):
        raise InvalidArgument("acl", entry, f"the form is {_ACL_FORM}")
    scheme, _, rest = entry.partition(":")
    identity, colon, permissions = rest.rpartition(":")
    if not (scheme and colon and permissions) or set(permissions) - set(_PERMISSIONS):
        raise InvalidArgument("acl", entry, f"the form is {_ACL_FORM}")
    return ACL(sum(_PERMISSIONS[letter] for letter in set(permissions)), Id(scheme, identity))


def format_entry(entry: ACL) -> str:
    """Return an entry as :func:`parse_acl` reads it."""
    held = (letter for letter in "cdrwa" if entry.perms & _PERMISSIONS[letter])
    return f"{entry.id.scheme}:{entry.id.id}:{''.join(held)}"
