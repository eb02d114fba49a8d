"""Who may: TLS, SASL and ACLs, and what is told when they refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import attrs
import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

import zkelect
from zkelect.testing import LocalEnsemble, find_server
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Operator

    from zkelect.session.session import Session

T = 2.0
TICK = 0.2
PASSWORD = "of-the-store"


def connect(hosts: str, *, timeout: float = 30.0, **options: object) -> Session:
    return zkelect.connect(
        hosts, session_timeout=T, tick_time=TICK, timeout=timeout, **options  # type: ignore[arg-type]  # each test gives what it is about
    )


# --- TLS -----------------------------------------------------------------------------------------


@attrs.frozen
class Certificate:
    """A key store for a server, and what a client needs to trust it."""

    store: Path
    ca: str


def make_certificate(folder: Path, name: str, extension: str) -> Certificate:
    """Make a key and its self-signed certificate with the Java that runs the server."""
    keytool = str(find_server().java.with_name("keytool"))
    store, pem = folder / f"{name}.p12", folder / f"{name}.pem"
    of_store = ["-keystore", str(store), "-storepass", PASSWORD, "-alias", "zk"]
    generate = ["-genkeypair", "-keyalg", "EC", "-dname", f"CN={name}", "-ext", extension]
    for arguments in (generate, ["-exportcert", "-rfc", "-file", str(pem)]):
        subprocess.run([keytool, *arguments, *of_store], check=True, capture_output=True)
    return Certificate(store, str(pem))


@attrs.frozen
class Encrypted:
    """A server with a second port for TLS, whose certificate is for localhost."""

    plain: str
    port: int
    right: str
    wrong: str


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("certificates")
    right = make_certificate(folder, "right", "SAN=dns:localhost")
    wrong = make_certificate(folder, "wrong", "SAN=dns:localhost")
    port = Port()
    config = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": str(port.number),
        "secureClientPortAddress": "127.0.0.1",
        "ssl.keyStore.location": str(right.store),
        "ssl.keyStore.password": PASSWORD,
        "ssl.clientAuth": "none",
    }
    with LocalEnsemble(config=config) as started:
        yield Encrypted(started.hosts, port.number, right.ca, wrong.ca)
    port.release()


def test_over_tls_a_candidate_is_elected(encrypted: Encrypted, path: str) -> None:
    hosts = f"localhost:{encrypted.port}"
    with connect(hosts, tls=zkelect.Tls(ca=encrypted.right)) as session:
        zkelect.Election(session, path).run(lambda leadership: leadership.check(), timeout=30.0)


def test_a_wrong_ca_is_told_as_such(encrypted: Encrypted) -> None:
    hosts = f"localhost:{encrypted.port}"
    with pytest.raises(zkelect.TlsFailed) as refused:
        connect(hosts, tls=zkelect.Tls(ca=encrypted.wrong))
    assert str(encrypted.port) in refused.value.host
    assert "self-signed certificate" in refused.value.cause
    assert "check ca" in str(refused.value)


def test_a_wrong_host_name_is_told_as_such(encrypted: Encrypted) -> None:
    hosts = f"127.0.0.1:{encrypted.port}"
    with pytest.raises(zkelect.TlsFailed) as refused:
        connect(hosts, tls=zkelect.Tls(ca=encrypted.right))
    assert "IP address mismatch" in refused.value.cause
    assert "the name in the server's certificate" in str(refused.value)
    unnamed = zkelect.Tls(ca=encrypted.right, check_hostname=False)
    with connect(hosts, tls=unnamed) as session:
        assert session.connected


def test_a_port_without_tls_is_told_as_such(encrypted: Encrypted) -> None:
    with pytest.raises(zkelect.TlsFailed) as refused:
        connect(encrypted.plain, tls=zkelect.Tls(ca=encrypted.right), timeout=3 * T)
    assert refused.value.host == encrypted.plain


def test_a_port_that_wants_tls_is_told_as_such(encrypted: Encrypted) -> None:
    with pytest.raises(zkelect.TlsFailed, match="this port speaks TLS; give tls="):
        connect(f"localhost:{encrypted.port}", timeout=3 * T)


# --- SASL ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnsemble]:
    """A server that knows one user, alice, by SASL DIGEST-MD5."""
    users = tmp_path_factory.mktemp("sasl") / "jaas.conf"
    users.write_text(
        "Server { org.apache.zookeeper.server.auth.DigestLoginModule required"
        ' user_alice="wonder"; };\n'
    )
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    with LocalEnsemble(
        config={"authProvider.1": provider},
        java_options=[f"-Djava.security.auth.login.config={users}"],
    ) as started:
        yield started


def test_by_sasl_every_znode_is_the_candidates_own(
    guarded: LocalEnsemble, operate: Callable[..., Operator], path: str
) -> None:
    mechanism = {"mechanism": "DIGEST-MD5", "username": "alice", "password": "wonder"}
    operator = operate(guarded.hosts, sasl_options=mechanism)
    alice = zkelect.Sasl(user="alice", password="wonder")
    with connect(guarded.hosts, auth=alice) as session:
        with zkelect.Election(session, path).campaign(timeout=30.0) as leadership:
            for znode in znodes(path, leadership):
                (acl,) = operator.kazoo.get_acls(znode)[0]
                assert (acl.id.scheme, acl.id.id, acl.perms) == ("sasl", "alice", 31), znode


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("mallory", "wrong")])
def test_wrong_sasl_credentials_are_told_as_such(
    guarded: LocalEnsemble, user: str, password: str
) -> None:
    with pytest.raises(zkelect.AuthenticationFailed) as refused:
        connect(guarded.hosts, auth=zkelect.Sasl(user=user, password=password))
    assert refused.value.scheme == "sasl DIGEST-MD5"
    assert guarded.hosts in str(refused.value)
    assert password not in str(refused.value)


def test_sasl_without_its_extra_is_told_as_such(
    guarded: LocalEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "puresasl", None)
    monkeypatch.setattr("kazoo.protocol.connection.PURESASL_AVAILABLE", False)
    with pytest.raises(zkelect.Misuse, match=r"zkelect\[sasl\]"):
        connect(guarded.hosts, auth=zkelect.Sasl(user="alice", password="wonder"))


# --- ACLs ----------------------------------------------------------------------------------------


def znodes(path: str, leadership: zkelect.Leadership) -> list[str]:
    """Return every znode that the library makes for an election, but for those above it."""
    record = f"{path}.zkelect"
    return [path, f"{path}/{leadership.node}", record, f"{record}/term", f"{record}/history"]


ALICE = zkelect.Digest(user="alice", password="wonder")


def test_by_digest_every_znode_is_the_creators_own(
    zookeeper: LocalEnsemble, operate: Callable[..., Operator], path: str
) -> None:
    operator = operate(zookeeper.hosts, auth_data=[("digest", "alice:wonder")])
    with connect(zookeeper.hosts, auth=ALICE) as session:
        with zkelect.Election(session, path).campaign(timeout=30.0) as leadership:
            for znode in znodes(path, leadership):
                (acl,) = operator.kazoo.get_acls(znode)[0]
                assert (acl.id.scheme, acl.perms) == ("digest", 31), znode
                assert acl.id.id.startswith("alice:")


def test_an_acl_of_ones_own_is_on_every_znode(
    zookeeper: LocalEnsemble, operator: Operator, path: str
) -> None:
    entries = ["world:anyone:r", "ip:127.0.0.1:cdrwa"]
    with connect(zookeeper.hosts, acl=entries) as session:
        with zkelect.Election(session, path).campaign(timeout=30.0) as leadership:
            for znode in znodes(path, leadership):
                acl = {(a.id.scheme, a.id.id, a.perms) for a in operator.kazoo.get_acls(znode)[0]}
                assert acl == {("world", "anyone", 1), ("ip", "127.0.0.1", 31)}, znode


@pytest.mark.parametrize("acl", [["world:anyone"], ["world:anyone:x"], "world:anyone:r", []])
def test_an_acl_that_cannot_be_is_told_with_its_form(
    acl: list[str], zookeeper: LocalEnsemble
) -> None:
    with pytest.raises(zkelect.InvalidArgument, match="scheme:id:permissions"):
        connect(zookeeper.hosts, acl=acl)


@pytest.fixture
def alices(operator: Operator, path: str) -> Iterator[str]:
    """A znode that only alice may use."""
    operator.kazoo.ensure_path(path)
    operator.kazoo.create(
        f"{path}/alices", acl=[make_digest_acl("alice", "wonder", all=True)]
    )
    yield f"{path}/alices"


@pytest.mark.parametrize(
    ("auth", "schemes", "whom"),
    [
        (None, (), "nobody"),
        (zkelect.Digest(user="bob", password="builder"), ("digest",), "digest"),
        (zkelect.Digest(user="alice", password="wrong"), ("digest",), "digest"),
    ],
)
def test_a_path_that_is_denied_is_told_with_permission_and_schemes(
    auth: zkelect.Digest | None,
    schemes: tuple[str, ...],
    whom: str,
    zookeeper: LocalEnsemble,
    operate: Callable[..., Operator],
    alices: str,
) -> None:
    with connect(zookeeper.hosts, auth=auth) as session:
        election = zkelect.Election(session, f"{alices}/jobs")
        with pytest.raises(zkelect.PermissionDenied) as refused:
            election.run(lambda _: None, timeout=30.0)
        assert refused.value.path.startswith(alices)
        assert (refused.value.permission, refused.value.schemes) == ("create", schemes)
        assert f"permission to create is missing; authenticated as {whom}" in str(refused.value)
        with pytest.raises(zkelect.PermissionDenied) as refused:
            zkelect.Election(session, alices).candidates()
        assert (refused.value.path, refused.value.permission) == (alices, "read")
    operator = operate(zookeeper.hosts, auth_data=[("digest", "alice:wonder")])
    assert operator.kazoo.get_children(alices) == []


def test_a_path_that_is_denied_is_the_owners_to_use(zookeeper: LocalEnsemble, alices: str) -> None:
    with connect(zookeeper.hosts, auth=ALICE) as session:
        zkelect.Election(session, f"{alices}/jobs").run(lambda _: None, timeout=30.0)
