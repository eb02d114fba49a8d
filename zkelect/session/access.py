"""Who we are and who may touch our znodes: credentials, TLS, ACLs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id

from zkelect.errors import InvalidArgument

__all__ = ["Digest", "Sasl", "Tls", "client_options", "parse_acl"]

_PERMISSIONS: Final = {"r": 1, "w": 2, "c": 4, "d": 8, "a": 16}
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

    :param mechanism: 'DIGEST-MD5' or 'GSSAPI'. :param user: for DIGEST-MD5.
    :param service: the servers' principal, for GSSAPI.
    """

    mechanism: str = "DIGEST-MD5"
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    service: str = "zookeeper"


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


def client_options(auth: Digest | Sasl | None, tls: Tls | None) -> dict[str, Any]:
    """Return what a kazoo client must be told. kazoo checks no host name unless told to."""
    return {**_auth_options(auth), **_tls_options(tls)}


def parse_acl(acl: Sequence[str] | None, auth: Digest | Sasl | None) -> list[ACL]:
    """Return the ACL of every znode the library makes.

    :param acl: entries as ``scheme:id:permissions``; None: all to the creator when
        authenticated, otherwise open.
    """
    if acl is None:
        return list(OPEN_ACL_UNSAFE if auth is None else CREATOR_ALL_ACL)
    if isinstance(acl, str) or not acl:
        raise InvalidArgument("acl", acl, f"a list of entries, each {_ACL_FORM}")
    return [_acl_entry(entry) for entry in acl]


def _acl_entry(entry: str) -> ACL:
    scheme, _, rest = entry.partition(":")
    identity, colon, permissions = rest.rpartition(":")
    if not (scheme and colon and permissions) or set(permissions) - set(_PERMISSIONS):
        raise InvalidArgument("acl", entry, f"the form is {_ACL_FORM}")
    return ACL(sum(_PERMISSIONS[letter] for letter in set(permissions)), Id(scheme, identity))


def _auth_options(auth: Digest | Sasl | None) -> dict[str, Any]:
    if auth is None:
        return {}
    if isinstance(auth, Digest):
        return {"auth_data": [("digest", f"{auth.user}:{auth.password}")]}
    options = {"mechanism": auth.mechanism, "service": auth.service}
    if auth.user is not None:
        options |= {"username": auth.user, "password": auth.password or ""}
    return {"sasl_options": options}


def _tls_options(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    return {
        "use_ssl": True,
        "verify_certs": True,
        "ca": tls.ca,
        "certfile": tls.certfile,
        "keyfile": tls.keyfile,
        "keyfile_password": tls.keyfile_password,
        "check_hostname": tls.check_hostname,
    }
