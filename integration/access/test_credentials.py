"""Who we are: what we make is ours, what is others' is refused by name, passwords stay secret."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import pytest
from access.fortress import KEY_PASSWORD, PASSWORDS
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, make_acl, make_digest_acl

import zkelect
from zkelect.testing import Forwarder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.fortress import Fortress, Keys

    from zkelect.testing import LocalEnsemble

    Connect = Callable[..., zkelect.Session]
    Refused = Callable[..., Any]
    Eventually = Callable[[Callable[[], object], str], None]

ALICE: Final = zkelect.Digest(user="alice", password=PASSWORDS["alice"])
BOB: Final = zkelect.Digest(user="bob", password=PASSWORDS["bob"])
ALL: Final = 31


def digest_acl(user: str) -> ACL:
    made: ACL = make_digest_acl(user, PASSWORDS[user], all=True)
    return made


def id_of(user: str) -> str:
    """``user:hash``, as an ACL names a digest user."""
    return str(digest_acl(user).id.id)


@pytest.fixture
def own(path: str) -> str:
    """An election below a parent that is this test's own, so that we make it all."""
    return f"/{path.rpartition('/')[2]}/election"


def made_by(path: str, node: str) -> list[str]:
    """Every znode that is made for an election and its leader."""
    record = f"{path}.zkelect"
    return [
        path.rpartition("/")[0],
        path,
        f"{path}/{node}",
        record,
        f"{record}/term",
        f"{record}/history",
    ]


# --- what we make ------------------------------------------------------------------------------


def test_everything_we_make_is_ours_alone(
    connect: Connect, kazoo: Any, zookeeper: LocalEnsemble, own: str
) -> None:
    election = zkelect.Election(connect(zookeeper.hosts, auth=ALICE), own, name="a")
    client = kazoo(zookeeper.hosts, auth_data=[("digest", f"alice:{ALICE.password}")])
    with election.campaign(timeout=30.0) as leadership:
        for made in made_by(own, leadership.node):
            assert client.get_acls(made)[0] == [digest_acl("alice")], made
        leader = election.leader()
        assert leader is not None
        assert leader.token == leadership.token


def test_everything_we_make_is_open_without_authentication(
    connect: Connect, kazoo: Any, zookeeper: LocalEnsemble, own: str
) -> None:
    election = zkelect.Election(connect(zookeeper.hosts), own)
    with election.campaign(timeout=30.0) as leadership:
        for made in made_by(own, leadership.node):
            acls = kazoo(zookeeper.hosts).get_acls(made)[0]
            assert acls == [make_acl("world", "anyone", all=True)], made


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("world:anyone:cdrwa", make_acl("world", "anyone", all=True)),
        ("ip:127.0.0.1:cdrwa", make_acl("ip", "127.0.0.1", all=True)),
        ("ip:127.0.0.0/8:rrw", make_acl("ip", "127.0.0.0/8", read=True, write=True)),
        (f"digest:{id_of('bob')}:r", make_digest_acl("bob", PASSWORDS["bob"], read=True)),
        ("auth::cdrwa", digest_acl("alice")),
        ("auth:whoever:cdrwa", digest_acl("alice")),
    ],
)
def test_acl_entries_as_zkcli_writes_them(
    entry: str, expected: ACL, connect: Connect, kazoo: Any, zookeeper: LocalEnsemble, own: str
) -> None:
    acl = [entry, f"digest:{id_of('alice')}:cdrwa"]
    election = zkelect.Election(connect(zookeeper.hosts, auth=ALICE, acl=acl), own)
    client = kazoo(zookeeper.hosts, auth_data=[("digest", f"alice:{ALICE.password}")])
    with election.campaign(timeout=30.0) as leadership:
        for made in made_by(own, leadership.node):
            assert set(client.get_acls(made)[0]) == {expected, digest_acl("alice")}, made


@pytest.mark.parametrize("adopted", [False, True])
def test_an_adopted_client_makes_what_its_default_acl_says(
    adopted: bool, kazoo: Any, zookeeper: LocalEnsemble, own: str
) -> None:
    """Its default_acl, unless acl= is given."""
    client = kazoo(
        zookeeper.hosts,
        auth_data=[("digest", f"alice:{ALICE.password}")],
        default_acl=[digest_acl("alice")],
    )
    acl = ["world:anyone:cdrwa"] if adopted else None
    with (
        zkelect.Session.adopt(client, session_timeout=4.0, tick_time=0.2, acl=acl) as session,
        zkelect.Election(session, own).campaign(timeout=30.0) as leadership,
    ):
        expected = make_acl("world", "anyone", all=True) if adopted else digest_acl("alice")
        for made in made_by(own, leadership.node):
            assert client.get_acls(made)[0] == [expected], made


def wrong_acls() -> list[tuple[Any, Any]]:
    """What is given, and what of it is wrong."""
    good = "world:anyone:cdrwa"
    entries = ["", "cdrwa", "world:anyone", "world:anyone:", "world:anyone:rx", ":anyone:r", 3]
    return [*(([good, entry], entry) for entry in entries), ([], []), ("", ""), (good, good)]


@pytest.mark.parametrize(("acl", "wrong"), wrong_acls())
def test_acl_entries_that_are_none(
    acl: Any, wrong: Any, connect: Connect, zookeeper: LocalEnsemble, refused: Refused
) -> None:
    error = refused(zkelect.InvalidArgument, lambda: connect(zookeeper.hosts, acl=acl))
    assert (error.argument, error.value) == ("acl", wrong)
    assert "'sasl:alice:cdrwa'" in str(error)


@pytest.mark.parametrize("entry", ["bogus:alice:cdrwa", "digest:alice:cdrwa", "ip:nowhere:r"])
def test_acl_entries_that_the_servers_do_not_take(
    entry: str, connect: Connect, zookeeper: LocalEnsemble, refused: Refused
) -> None:
    error = refused(zkelect.InvalidArgument, lambda: connect(zookeeper.hosts, acl=[entry]))
    assert (error.argument, error.value) == ("acl", [entry])
    assert error.__cause__ is not None


# --- what is others' ---------------------------------------------------------------------------


@pytest.fixture
def kept(connect: Connect, zookeeper: LocalEnsemble, own: str) -> Iterator[str]:
    """An election that Alice keeps to herself, with Alice leading."""
    election = zkelect.Election(connect(zookeeper.hosts, auth=ALICE), own, name="alice")
    with election.campaign(timeout=30.0):
        yield own


def assert_denied(
    error: zkelect.PermissionDenied, path: str, permission: str, schemes: tuple[str, ...]
) -> None:
    assert isinstance(error, zkelect.Unreachable)
    assert (error.path, error.permission, error.schemes) == (path, permission, schemes)
    assert path in str(error)
    assert permission in str(error)
    assert ", ".join(schemes) in str(error)
    assert isinstance(error.__cause__, NoAuthError)


@pytest.mark.parametrize(("auth", "schemes"), [(BOB, ("digest",)), (None, ())])
def test_another_user_is_denied_everything(
    auth: zkelect.Digest | None,
    schemes: tuple[str, ...],
    kept: str,
    connect: Connect,
    kazoo: Any,
    zookeeper: LocalEnsemble,
) -> None:
    election = zkelect.Election(connect(zookeeper.hosts, auth=auth), kept, name="bob")
    with pytest.raises(zkelect.PermissionDenied) as caught:
        election.campaign(timeout=30.0).__enter__()
    assert_denied(caught.value, kept, "create", schemes)
    assert "nobody (no auth was given)" in str(caught.value) or schemes
    with pytest.raises(zkelect.PermissionDenied) as caught:
        election.leader()
    assert_denied(caught.value, kept, "read", schemes)
    with pytest.raises(zkelect.PermissionDenied) as caught:
        election.candidates()
    assert_denied(caught.value, kept, "read", schemes)
    alice = kazoo(zookeeper.hosts, auth_data=[("digest", f"alice:{ALICE.password}")])
    assert len(alice.get_children(kept)) == 1


def test_a_wrong_password_shows_as_a_denied_permission(
    kept: str, connect: Connect, zookeeper: LocalEnsemble
) -> None:
    wrong = zkelect.Digest(user="alice", password="not-hers")
    election = zkelect.Election(connect(zookeeper.hosts, auth=wrong), kept)
    with pytest.raises(zkelect.PermissionDenied) as caught:
        election.run(lambda _: None, timeout=30.0)
    assert_denied(caught.value, kept, "create", ("digest",))
    assert "not-hers" not in str(caught.value)


def test_the_same_user_stands_behind(kept: str, connect: Connect, zookeeper: LocalEnsemble) -> None:
    election = zkelect.Election(connect(zookeeper.hosts, auth=ALICE), kept, name="second")
    with pytest.raises(zkelect.NotElected) as caught:
        election.run(lambda _: None, timeout=1.0)
    assert caught.value.ahead == 1


def test_who_may_only_read_can_follow_but_not_stand(
    connect: Connect, zookeeper: LocalEnsemble, own: str
) -> None:
    acl = [f"digest:{id_of('alice')}:cdrwa", "world:anyone:r"]
    alice = zkelect.Election(connect(zookeeper.hosts, auth=ALICE, acl=acl), own, name="alice")
    with alice.campaign(timeout=30.0) as leadership:
        reader = zkelect.Election(connect(zookeeper.hosts), own, name="reader")
        leader = reader.leader()
        assert leader is not None
        assert (leader.name, leader.token) == ("alice", leadership.token)
        assert [candidate.name for candidate in reader.candidates()] == ["alice"]
        with pytest.raises(zkelect.PermissionDenied) as caught:
            reader.campaign(timeout=30.0).__enter__()
        assert_denied(caught.value, own, "create", ())


def test_who_may_create_but_not_read_leaves_nothing_behind(
    connect: Connect, kazoo: Any, zookeeper: LocalEnsemble, own: str, eventually: Eventually
) -> None:
    """The candidate is made before the roll can be read, and has to go again."""
    alice = kazoo(zookeeper.hosts, auth_data=[("digest", f"alice:{ALICE.password}")])
    drop_box = [digest_acl("alice"), make_acl("world", "anyone", create=True, delete=True)]
    alice.create(own, acl=drop_box, makepath=True)
    election = zkelect.Election(connect(zookeeper.hosts), own)
    with pytest.raises(zkelect.PermissionDenied) as caught:
        election.campaign(timeout=30.0).__enter__()
    assert_denied(caught.value, own, "read", ())
    eventually(lambda: alice.get_children(own) == [], "the candidate is gone")


def test_a_record_that_may_not_be_read(
    connect: Connect, kazoo: Any, zookeeper: LocalEnsemble, own: str, eventually: Eventually
) -> None:
    alice = kazoo(zookeeper.hosts, auth_data=[("digest", f"alice:{ALICE.password}")])
    alice.create(own, makepath=True)
    alice.create(f"{own}.zkelect", acl=[digest_acl("alice")])
    election = zkelect.Election(connect(zookeeper.hosts, auth=BOB), own)
    with pytest.raises(zkelect.PermissionDenied) as caught:
        election.campaign(timeout=30.0).__enter__()
    assert_denied(caught.value, f"{own}.zkelect", "read", ("digest",))
    eventually(lambda: alice.get_children(own) == [], "the candidate is gone")


# --- SASL --------------------------------------------------------------------------------------


def sasl(user: str, password: str | None = None) -> zkelect.Sasl:
    return zkelect.Sasl(user=user, password=PASSWORDS[user] if password is None else password)


def sasl_acl(user: str) -> ACL:
    made: ACL = make_acl("sasl", user, all=True)
    return made


@pytest.mark.parametrize("over", ["plain", "tls"])
def test_right_sasl_credentials(
    over: str, connect: Connect, kazoo: Any, fortress: Fortress, keys: Keys, own: str
) -> None:
    hosts, tls = (
        (fortress.plain, None)
        if over == "plain"
        else (fortress.named, zkelect.Tls(ca=keys.file("ca.crt")))
    )
    election = zkelect.Election(connect(hosts, auth=sasl("alice"), tls=tls), own)
    client = kazoo(
        fortress.plain,
        sasl_options={
            "mechanism": "DIGEST-MD5",
            "username": "alice",
            "password": PASSWORDS["alice"],
        },
    )
    with election.campaign(timeout=30.0) as leadership:
        for made in made_by(own, leadership.node):
            assert client.get_acls(made)[0] == [sasl_acl("alice")], made
        other = zkelect.Election(connect(fortress.plain, auth=sasl("bob")), own)
        with pytest.raises(zkelect.PermissionDenied) as caught:
            other.campaign(timeout=30.0).__enter__()
        assert_denied(caught.value, own, "create", ("sasl DIGEST-MD5",))


@pytest.mark.parametrize(
    ("user", "password"), [("alice", "wr0ng-s3cret"), ("mallory", "wr0ng-s3cret")]
)
def test_wrong_sasl_credentials(
    user: str, password: str, connect: Connect, fortress: Fortress, refused: Refused
) -> None:
    auth = sasl(user, password)
    error = refused(zkelect.AuthenticationFailed, lambda: connect(fortress.plain, auth=auth))
    assert (error.hosts, error.scheme) == (fortress.plain, "sasl DIGEST-MD5")
    assert fortress.plain in str(error)
    assert "sasl DIGEST-MD5" in str(error)
    assert password not in str(error) + repr(error) + repr(auth)


def test_wrong_sasl_credentials_ask_the_server_once(
    connect: Connect, fortress: Fortress, refused: Refused
) -> None:
    with Forwarder(fortress.plain) as forwarder:
        auth = sasl("alice", "wr0ng-s3cret")
        refused(zkelect.AuthenticationFailed, lambda: connect(forwarder.hosts, auth=auth))
        assert forwarder.requests["connect"] == 1
        assert forwarder.requests["create2"] == 0


def test_sasl_on_a_server_without_it(
    connect: Connect, zookeeper: LocalEnsemble, refused: Refused
) -> None:
    auth = sasl("alice")
    error = refused(zkelect.AuthenticationFailed, lambda: connect(zookeeper.hosts, auth=auth))
    assert error.hosts == zookeeper.hosts


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"user": "alice"},
        {"password": "s3cret"},
        {"mechanism": "PLAIN", "user": "alice", "password": "s3cret"},
        {"mechanism": "SCRAM-SHA-256", "user": "alice", "password": "s3cret"},
    ],
)
def test_sasl_credentials_that_cannot_be(
    options: dict[str, str], connect: Connect, fortress: Fortress, refused: Refused
) -> None:
    error = refused(
        zkelect.InvalidArgument, lambda: connect(fortress.plain, auth=zkelect.Sasl(**options))
    )
    assert isinstance(error, zkelect.Misuse)
    assert "s3cret" not in str(error)


# --- secrets -----------------------------------------------------------------------------------


SECRETS: Final = (*PASSWORDS.values(), "wr0ng-s3cret", KEY_PASSWORD)


@pytest.mark.parametrize(
    "value",
    [
        ALICE,
        sasl("alice"),
        zkelect.Tls(keyfile_password=KEY_PASSWORD),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_secret_is_shown(value: object) -> None:
    assert not [secret for secret in SECRETS if secret in f"{value!r}{value}"]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    """All that is logged anywhere, on every level, with arguments and tracebacks."""
    formatter = logging.Formatter("%(name)s %(levelno)s %(message)s")
    with caplog.at_level(1):
        yield lambda: "\n".join(
            f"{formatter.format(record)} {record.args!r}" for record in caplog.records
        )


@pytest.mark.parametrize("kind", ["digest", "sasl"])
def test_no_secret_is_logged(
    kind: str, connect: Connect, fortress: Fortress, own: str, logged: Callable[[], str]
) -> None:
    """Nor the session's password, which kazoo sends again when it reconnects."""
    with Forwarder(fortress.plain) as forwarder:
        session = connect(forwarder.hosts, auth=ALICE if kind == "digest" else sasl("alice"))
        _, password = session.credentials()
        with zkelect.Election(session, own).campaign(timeout=30.0) as leadership:
            forwarder.drop()
            assert forwarder.wait_for(lambda: forwarder.replies["connect"] >= 2)
            before = leadership.deadline
            while leadership.deadline == before:
                assert not leadership.wait_lost(0.01)
        session.close()
    text = logged()
    assert "create2" in text.lower()  # kazoo's requests were logged, that is
    for secret in (*SECRETS, repr(password), password.hex()):
        assert secret not in text


def test_no_secret_is_logged_when_it_is_wrong(
    connect: Connect, fortress: Fortress, refused: Refused, logged: Callable[[], str]
) -> None:
    auth = sasl("alice", "wr0ng-s3cret")
    refused(zkelect.AuthenticationFailed, lambda: connect(fortress.plain, auth=auth))
    assert "AUTH_FAILED" in logged()
    assert "wr0ng-s3cret" not in logged()
