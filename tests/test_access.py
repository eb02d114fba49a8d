"""Credentials, TLS and ACLs: what a client is told, and what is refused."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id

from zkelect.errors import InvalidArgument
from zkelect.session.access import (
    Digest,
    Sasl,
    Tls,
    client_options,
    format_entry,
    parse_acl,
    tls_context,
)

DIGEST = Digest(user="alice", password="s3cret")
FIND_SPEC = "zkelect.session.access.find_spec"


@pytest.fixture
def sasl_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra counts as installed; nothing of it is called here."""
    monkeypatch.setattr(FIND_SPEC, lambda module: module)


# --- credentials -----------------------------------------------------------------------------


def test_nothing_given_nothing_told() -> None:
    assert client_options(None) == {}


def test_a_digest_is_auth_data() -> None:
    assert client_options(DIGEST) == {"auth_data": [("digest", "alice:s3cret")]}


@pytest.mark.usefixtures("sasl_extra")
def test_sasl_by_password() -> None:
    assert client_options(Sasl(user="alice", password="s3cret")) == {
        "sasl_options": {
            "mechanism": "DIGEST-MD5",
            "service": "zookeeper",
            "username": "alice",
            "password": "s3cret",
        }
    }


@pytest.mark.usefixtures("sasl_extra")
def test_sasl_by_ticket_names_the_service_and_no_user() -> None:
    assert client_options(Sasl(mechanism="GSSAPI", service="zk")) == {
        "sasl_options": {"mechanism": "GSSAPI", "service": "zk"}
    }


@pytest.mark.usefixtures("sasl_extra")
def test_every_option_is_one_that_kazoo_takes() -> None:
    known = inspect.signature(KazooClient.__init__).parameters
    for auth in (DIGEST, Sasl(user="alice", password="s3cret")):
        assert set(client_options(auth)) <= set(known)


@pytest.mark.parametrize("mechanism", ["", "PLAIN", "digest-md5"])
def test_another_mechanism_is_refused(mechanism: str) -> None:
    with pytest.raises(InvalidArgument, match="'DIGEST-MD5', 'GSSAPI'"):
        Sasl(mechanism=mechanism, user="alice", password="s3cret")


@pytest.mark.parametrize(("user", "password"), [(None, "s3cret"), ("alice", None), ("", "")])
def test_a_password_login_that_lacks_something_is_refused(
    user: str | None, password: str | None
) -> None:
    with pytest.raises(InvalidArgument, match="needs a user and a password") as refusal:
        Sasl(user=user, password=password)
    assert "s3cret" not in str(refusal.value)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FIND_SPEC, lambda _: None)
    with pytest.raises(InvalidArgument, match=r"pip install 'zkelect\[sasl\]'"):
        client_options(Sasl(user="alice", password="s3cret"))


def test_no_password_is_shown() -> None:
    for secret in (DIGEST, Sasl(user="alice", password="s3cret"), Tls(keyfile_password="s3cret")):
        assert "s3cret" not in repr(secret)


# --- TLS -------------------------------------------------------------------------------------


def as_ca(file: str) -> Tls:
    return Tls(ca=file)


def as_certfile(file: str) -> Tls:
    return Tls(certfile=file)


def test_no_tls_no_context() -> None:
    assert tls_context(None) is None


def test_tls_checks_certificate_and_host_name() -> None:
    context = tls_context(Tls())
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_without_the_name_the_certificate_is_checked_all_the_same() -> None:
    context = tls_context(Tls(check_hostname=False))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


@pytest.mark.parametrize("make", [as_ca, as_certfile])
def test_a_file_that_is_missing_is_named(make: Callable[[str], Tls], tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(InvalidArgument) as refusal:
        tls_context(make(missing))
    assert refusal.value.value == missing
    assert isinstance(refusal.value.__cause__, FileNotFoundError)


@pytest.mark.parametrize("make", [as_ca, as_certfile])
def test_a_file_that_is_no_certificate_is_named(make: Callable[[str], Tls], tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    with pytest.raises(InvalidArgument, match="PEM file") as refusal:
        tls_context(make(str(garbage)))
    assert refusal.value.value == str(garbage)


# --- ACLs ------------------------------------------------------------------------------------


def test_by_default_all_is_the_creators_when_there_is_one() -> None:
    assert parse_acl(None, DIGEST) == CREATOR_ALL_ACL
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


@pytest.mark.parametrize(
    "entry",
    ["world:anyone:cdrwa", "sasl:alice:r", "digest:bob:x=:cw", "ip:10.0.0.0/8:", "x509:CN=a:a"],
)
def test_an_entry_is_shown_as_it_is_read(entry: str) -> None:
    scheme, _, rest = entry.partition(":")
    identity, _, letters = rest.rpartition(":")
    bits = sum(2 ** "rwcda".index(letter) for letter in letters)
    assert format_entry(ACL(bits, Id(scheme, identity))) == entry
    if letters:
        assert parse_acl([entry], None) == [ACL(bits, Id(scheme, identity))]


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
