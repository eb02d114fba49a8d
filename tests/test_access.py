"""Credentials, TLS and ACLs: what a kazoo client is told, and what is refused."""

from __future__ import annotations

import inspect

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id

from zkelect.errors import InvalidArgument
from zkelect.session.access import Digest, Sasl, Tls, client_options, parse_acl

DIGEST = Digest(user="alice", password="s3cret")


# --- what the client is told -----------------------------------------------------------------


@pytest.mark.parametrize("auth", [None, DIGEST, Sasl(user="alice", password="s3cret")], ids=str)
@pytest.mark.parametrize("tls", [None, Tls()], ids=str)
def test_every_option_is_one_that_kazoo_takes(auth: Digest | Sasl | None, tls: Tls | None) -> None:
    known = inspect.signature(KazooClient.__init__).parameters
    assert set(client_options(auth, tls)) <= set(known)


def test_nothing_given_nothing_told() -> None:
    assert client_options(None, None) == {}


def test_a_digest_is_auth_data() -> None:
    assert client_options(DIGEST, None) == {"auth_data": [("digest", "alice:s3cret")]}


def test_sasl_by_password() -> None:
    assert client_options(Sasl(user="alice", password="s3cret"), None) == {
        "sasl_options": {
            "mechanism": "DIGEST-MD5",
            "service": "zookeeper",
            "username": "alice",
            "password": "s3cret",
        }
    }


def test_sasl_by_ticket_names_the_service_and_no_user() -> None:
    assert client_options(Sasl(mechanism="GSSAPI", service="zk"), None) == {
        "sasl_options": {"mechanism": "GSSAPI", "service": "zk"}
    }


def test_tls_checks_certificate_and_host_name_unless_told_not_to() -> None:
    told = client_options(None, Tls(ca="ca.pem"))
    assert (told["use_ssl"], told["verify_certs"], told["check_hostname"]) == (True, True, True)
    assert told["ca"] == "ca.pem"
    assert client_options(None, Tls(check_hostname=False))["check_hostname"] is False


def test_tls_takes_our_own_certificate() -> None:
    told = client_options(None, Tls(certfile="me.pem", keyfile="me.key", keyfile_password="pw"))
    assert (told["certfile"], told["keyfile"], told["keyfile_password"]) == (
        "me.pem",
        "me.key",
        "pw",
    )


@pytest.mark.parametrize(
    "secret",
    [DIGEST, Sasl(user="alice", password="s3cret"), Tls(keyfile_password="s3cret")],
    ids=lambda secret: type(secret).__name__,
)
def test_no_password_is_shown(secret: object) -> None:
    assert "s3cret" not in repr(secret)


# --- ACLs ------------------------------------------------------------------------------------


def test_by_default_all_is_the_creators_when_there_is_one() -> None:
    assert parse_acl(None, DIGEST) == CREATOR_ALL_ACL
    assert parse_acl(None, Sasl(user="alice", password="s3cret")) == CREATOR_ALL_ACL
    assert parse_acl(None, None) == OPEN_ACL_UNSAFE


@pytest.mark.parametrize(
    ("entry", "acl"),
    [
        ("sasl:alice:cdrwa", ACL(31, Id("sasl", "alice"))),
        ("world:anyone:r", ACL(1, Id("world", "anyone"))),
        ("digest:alice:hash=:rw", ACL(3, Id("digest", "alice:hash="))),
        ("ip:fe80::1:cd", ACL(12, Id("ip", "fe80::1"))),
        ("auth::cdrwa", ACL(31, Id("auth", ""))),
        ("x509:CN=a,O=b:a", ACL(16, Id("x509", "CN=a,O=b"))),
        ("world:anyone:rr", ACL(1, Id("world", "anyone"))),
    ],
)
def test_an_entry_reads_as_zkcli_writes_it(entry: str, acl: ACL) -> None:
    assert parse_acl([entry], None) == [acl]


def test_entries_keep_their_order() -> None:
    acl = parse_acl(["sasl:alice:cdrwa", "world:anyone:r"], DIGEST)
    assert [entry.id.scheme for entry in acl] == ["sasl", "world"]


@pytest.mark.parametrize(
    "entry",
    ["", "world", "world:anyone", "sasl:cdrwa", ":anyone:r", "world:anyone:", "world:anyone:x"],
)
def test_an_entry_of_another_form_is_refused_with_the_right_one(entry: str) -> None:
    with pytest.raises(InvalidArgument, match="'sasl:alice:cdrwa'") as refusal:
        parse_acl([entry], None)
    assert (refusal.value.argument, refusal.value.value) == ("acl", entry)


@pytest.mark.parametrize("acl", [[], "world:anyone:r"], ids=str)
def test_no_list_of_entries_is_refused(acl: list[str] | str) -> None:
    with pytest.raises(InvalidArgument, match="a list of entries"):
        parse_acl(acl, None)
