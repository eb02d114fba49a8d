"""TLS: who does not prove its name is refused at once, with the reason OpenSSL gave."""

from __future__ import annotations

import ssl
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from access.fortress import KEY_PASSWORD
from election.actor import SESSION_TIMEOUT, TICK

import zkelect
from zkelect.testing.ports import Port

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.fortress import Fortress, Keys

    from zkelect.testing import LocalEnsemble

    Connect = Callable[..., zkelect.Session]
    Refused = Callable[..., Any]


LOCKED: Final = {"ca": "ca.crt", "certfile": "client.crt", "keyfile": "locked.key"}


def assert_refused(error: zkelect.TlsFailed, port: int, cause: str) -> None:
    assert isinstance(error, zkelect.Unreachable)
    assert error.host.endswith(f":{port}")
    assert cause in error.cause
    assert error.host in str(error)
    assert error.cause in str(error)


def test_a_whole_campaign(connect: Connect, fortress: Fortress, keys: Keys, path: str) -> None:
    session = connect(fortress.named, tls=zkelect.Tls(ca=keys.file("ca.crt")))
    election = zkelect.Election(session, path, name="a")
    with election.campaign(timeout=30.0) as leadership:
        before = leadership.deadline
        while leadership.deadline == before:  # the lease is renewed over TLS too
            assert not leadership.wait_lost(0.01)
        leader = election.leader()
        assert leader is not None
        assert (leader.name, leader.token) == ("a", leadership.check())
    assert election.candidates() == ()


def test_with_a_certificate_of_our_own(connect: Connect, fortress: Fortress, keys: Keys) -> None:
    certificate, key = keys.file("client.crt"), keys.file("client.key")
    apart = zkelect.Tls(ca=keys.file("ca.crt"), certfile=certificate, keyfile=key)
    assert connect(fortress.named, tls=apart).connected
    together = zkelect.Tls(ca=keys.file("ca.crt"), certfile=keys.file("client.pem"))
    assert connect(fortress.named, tls=together).connected


def test_with_a_key_that_has_a_password(
    connect: Connect, fortress: Fortress, keys: Keys, refused: Refused
) -> None:
    """Without it OpenSSL would ask at the terminal, and wait."""
    files: dict[str, Any] = {name: keys.file(file) for name, file in LOCKED.items()}
    right = zkelect.Tls(keyfile_password=KEY_PASSWORD, **files)
    assert connect(fortress.named, tls=right).connected
    for password in (None, "wr0ng-s3cret"):
        tls = zkelect.Tls(keyfile_password=password, **files)
        error = refused(zkelect.InvalidArgument, partial(connect, fortress.named, tls=tls))
        assert files["keyfile"] in str(error)
        assert "s3cret" not in str(error)


def test_a_wrong_authority(
    connect: Connect, fortress: Fortress, keys: Keys, refused: Refused
) -> None:
    tls = zkelect.Tls(ca=keys.file("stranger.crt"))
    error = refused(zkelect.TlsFailed, lambda: connect(fortress.named, tls=tls))
    assert_refused(error, fortress.port, "unable to get local issuer certificate")
    assert isinstance(error.__cause__, ssl.SSLCertVerificationError)


def test_the_authorities_of_the_system_when_none_is_given(
    connect: Connect,
    fortress: Fortress,
    keys: Keys,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused(zkelect.TlsFailed, lambda: connect(fortress.named, tls=zkelect.Tls()))
    monkeypatch.setenv("SSL_CERT_FILE", keys.file("ca.crt"))
    assert connect(fortress.named, tls=zkelect.Tls()).connected


def test_only_the_authority_that_was_given(
    connect: Connect,
    fortress: Fortress,
    keys: Keys,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever names an authority does not want those of the system beside it."""
    monkeypatch.setenv("SSL_CERT_FILE", keys.file("ca.crt"))
    tls = zkelect.Tls(ca=keys.file("stranger.crt"))
    error = refused(zkelect.TlsFailed, lambda: connect(fortress.named, tls=tls))
    assert_refused(error, fortress.port, "unable to get local issuer certificate")


def test_a_wrong_host_name(
    connect: Connect, fortress: Fortress, keys: Keys, refused: Refused
) -> None:
    tls = zkelect.Tls(ca=keys.file("ca.crt"))
    error = refused(zkelect.TlsFailed, lambda: connect(fortress.unnamed, tls=tls))
    assert_refused(error, fortress.port, "certificate is not valid for '127.0.0.1'")
    assert isinstance(error.__cause__, ssl.SSLCertVerificationError)


def test_a_wrong_host_name_that_is_not_asked_for(
    connect: Connect, fortress: Fortress, keys: Keys, refused: Refused
) -> None:
    assert connect(
        fortress.unnamed, tls=zkelect.Tls(ca=keys.file("ca.crt"), check_hostname=False)
    ).connected
    tls = zkelect.Tls(ca=keys.file("stranger.crt"), check_hostname=False)  # the authority always is
    refused(zkelect.TlsFailed, lambda: connect(fortress.unnamed, tls=tls))


def test_one_server_with_a_wrong_name_among_good_ones(
    connect: Connect, fortress: Fortress, keys: Keys
) -> None:
    hosts = f"{fortress.unnamed},{fortress.named}"
    for _ in range(8):  # kazoo shuffles them
        connect(hosts, tls=zkelect.Tls(ca=keys.file("ca.crt"))).close()


def test_a_wrong_name_and_a_server_that_is_down(
    fortress: Fortress, keys: Keys, refused: Refused
) -> None:
    """The other one may be up again soon, so this is not hopeless; both are told."""
    down = Port()
    error = refused(
        zkelect.ConnectFailed,
        lambda: zkelect.connect(
            f"{fortress.unnamed},{down.address}",
            session_timeout=SESSION_TIMEOUT,
            tick_time=TICK,
            tls=zkelect.Tls(ca=keys.file("ca.crt")),
            timeout=1.0,
        ),
    )
    assert "certificate is not valid" in error.causes[fortress.unnamed]
    assert "Connection refused" in error.causes[down.address]
    down.release()


def test_tls_on_a_plain_port(
    connect: Connect, zookeeper: LocalEnsemble, keys: Keys, refused: Refused
) -> None:
    port = int(zookeeper.hosts.rpartition(":")[2])
    tls = zkelect.Tls(ca=keys.file("ca.crt"))
    error = refused(zkelect.TlsFailed, lambda: connect(zookeeper.hosts, tls=tls))
    assert error.host == f"127.0.0.1:{port}"
    assert isinstance(error.__cause__, (ssl.SSLError, OSError))


def test_no_tls_on_a_tls_port(connect: Connect, fortress: Fortress, refused: Refused) -> None:
    error = refused(zkelect.TlsFailed, lambda: connect(fortress.named))
    assert_refused(error, fortress.port, "speaks TLS")
    assert "tls=" in str(error)


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("ca", {"ca": "none.pem"}),
        ("ca", {"ca": "text.pem"}),
        ("certfile", {"certfile": "none.pem"}),
        ("certfile", {"certfile": "none.pem", "keyfile": "client.key"}),
        ("certfile", {"certfile": "ca.crt", "keyfile": "client.key"}),
    ],
)
def test_files_that_are_no_good(
    argument: str,
    options: dict[str, str],
    connect: Connect,
    fortress: Fortress,
    keys: Keys,
    refused: Refused,
) -> None:
    files: dict[str, Any] = {name: keys.file(file) for name, file in options.items()}
    tls = zkelect.Tls(**{"ca": keys.file("ca.crt"), **files})
    error = refused(zkelect.InvalidArgument, lambda: connect(fortress.named, tls=tls))
    assert (error.argument, error.value) == (argument, files[argument])
    assert files[argument] in str(error)
    assert isinstance(error.__cause__, OSError)  # ssl.SSLError is one
