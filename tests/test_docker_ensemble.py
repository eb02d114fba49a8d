"""Docker ensembles as far as they go without an engine: arguments, texts, refusals."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from zkelect.errors import InvalidArgument, Misuse
from zkelect.testing.configuration import Settings
from zkelect.testing.docker import DockerEnsemble
from zkelect.testing.docker_configuration import Plan
from zkelect.testing.docker_engine import published_at
from zkelect.testing.docker_errors import EngineFailed, EngineNotFound
from zkelect.testing.docker_faults import Fault, firewall, netem, reset
from zkelect.testing.docker_network import DockerNetwork
from zkelect.testing.docker_tools import Toolbox, dockerfile
from zkelect.testing.netns import NetworkUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zkelect.testing.ensembles import FaultyEnsemble

ADDRESSES = ["10.0.0.2", "10.0.0.3", "10.0.0.4"]


def test_it_is_an_ensemble_whose_network_can_be_broken() -> None:
    ensemble: FaultyEnsemble = DockerEnsemble(3)
    assert (ensemble.hosts, len(ensemble.servers)) == ("", 0)
    assert repr(ensemble) == "<DockerEnsemble not started>"


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"servers": 0}, "servers"),
        ({"servers": 8}, "servers"),
        ({"tick_time": 0.0}, "tick_time"),
        ({"max_session_timeout": 4000.0}, "max_session_timeout"),
        ({"config": {"authProvider.1": "a b"}}, "config"),
        ({"config": {"a b": "c"}}, "config"),
        ({"java_options": ["-Da=b c"]}, "java_options"),
        ({"java_options": [""]}, "java_options"),
    ],
)
def test_an_argument_outside_its_range_is_refused(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        DockerEnsemble(**arguments)
    assert refused.value.argument == name


class Breaker:
    """A network that notes what is asked of it."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **options: self.done.append((name, *arguments, *options.values()))


@pytest.fixture
def breaker() -> Breaker:
    return Breaker()


@pytest.fixture
def started(breaker: Breaker, monkeypatch: pytest.MonkeyPatch) -> DockerEnsemble:
    ensemble = DockerEnsemble(3)
    monkeypatch.setattr(ensemble, "_network", breaker)
    monkeypatch.setattr(ensemble, "servers", (None, None, None))
    return ensemble


def test_a_partition_makes_each_side_deaf_to_the_other(
    started: DockerEnsemble, breaker: Breaker
) -> None:
    started.partition({0}, {1, 2})
    assert breaker.done == [("deafen", 1, [0]), ("deafen", 2, [0]), ("deafen", 0, [1, 2])]


def test_one_way_makes_only_the_other_side_deaf(started: DockerEnsemble, breaker: Breaker) -> None:
    started.partition([0, 1], [2], one_way=True)
    assert breaker.done == [("deafen", 2, [0, 1])]


def test_faults_are_handed_on(started: DockerEnsemble, breaker: Breaker) -> None:
    started.isolate(2)
    started.slow(1, latency=0.5, loss=0.25)
    started.heal()
    started.heal(reset=False)
    assert breaker.done == [
        ("isolate", 2),
        ("slow", 1, 0.5, 0.25),
        ("heal", True),
        ("heal", False),
    ]


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (lambda ensemble: ensemble.isolate(3), "index"),
        (lambda ensemble: ensemble.isolate(-1), "index"),
        (lambda ensemble: ensemble.partition({3}, {0}), "one"),
        (lambda ensemble: ensemble.partition({0}, {3}), "other"),
        (lambda ensemble: ensemble.partition({0, 1}, {1, 2}), "other"),
        (lambda ensemble: ensemble.slow(3), "index"),
        (lambda ensemble: ensemble.slow(0, latency=-0.1), "latency"),
        (lambda ensemble: ensemble.slow(0, latency=61.0), "latency"),
        (lambda ensemble: ensemble.slow(0, latency=float("nan")), "latency"),
        (lambda ensemble: ensemble.slow(0, loss=1.1), "loss"),
        (lambda ensemble: ensemble.slow(0, loss=float("nan")), "loss"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(
    started: DockerEnsemble,
    breaker: Breaker,
    fault: Callable[[DockerEnsemble], None],
    name: str,
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        fault(started)
    assert refused.value.argument == name
    assert breaker.done == []


@pytest.mark.parametrize(
    "call",
    [
        lambda ensemble: ensemble.leader(),
        lambda ensemble: ensemble.keep(),
        lambda ensemble: ensemble.isolate(0),
        lambda ensemble: ensemble.partition({0}, {1}),
        lambda ensemble: ensemble.slow(0),
        lambda ensemble: ensemble.heal(),
    ],
)
def test_what_needs_a_started_ensemble_says_so(call: Callable[[DockerEnsemble], object]) -> None:
    ensemble = DockerEnsemble(3)
    with pytest.raises(Misuse, match="not started"):
        call(ensemble)
    ensemble.stop()


# --- what a server is told ---------------------------------------------------------------------


def told(index: int = 0, addresses: Sequence[str] = ADDRESSES, **settings: Any) -> dict[str, str]:
    plan = Plan(
        size=3,
        image="i",
        tools_image="i",
        settings=Settings(**settings),
        java_options=("-Dours=1",),
    )
    return plan.environment(index, addresses)


def test_the_variables_of_the_official_image() -> None:
    variables = told(index=1)
    options = variables.pop("SERVER_JVMFLAGS").split(" ")
    assert variables == {
        "ZOO_MY_ID": "2",
        "ZOO_SERVERS": "server.1=10.0.0.2:2888:3888;2181 server.2=10.0.0.3:2888:3888;2181 "
        "server.3=10.0.0.4:2888:3888;2181",
        "ZOO_TICK_TIME": "200",
        "ZOO_INIT_LIMIT": "75",
        "ZOO_SYNC_LIMIT": "15",
        "ZOO_MAX_CLIENT_CNXNS": "0",
        "ZOO_STANDALONE_ENABLED": "true",
        "ZOO_ADMINSERVER_ENABLED": "false",
        "ZOO_4LW_COMMANDS_WHITELIST": "*",
        "ZOO_CFG_EXTRA": "preAllocSize=1024 forceSync=no",
    }
    assert options[-1] == "-Dours=1"
    assert "-Xmx128m" in options
    assert "-Dzookeeper.fastleader.maxNotificationInterval=400" in options


def test_settings_come_last_so_that_they_win() -> None:
    variables = told(
        durable=True,
        min_session_timeout=1.0,
        max_session_timeout=9.5,
        config={"preAllocSize": "64", "tickTime": "9"},
    )
    assert variables["ZOO_CFG_EXTRA"] == (
        "minSessionTimeout=1000 maxSessionTimeout=9500 preAllocSize=64 tickTime=9"
    )


# --- the engine --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("http+docker://localhost", ("127.0.0.1", "127.0.0.1")),
        ("http+docker://localnpipe", ("127.0.0.1", "127.0.0.1")),
        ("http://127.0.0.1:2375", ("127.0.0.1", "127.0.0.1")),
        ("https://localhost:2376", ("127.0.0.1", "127.0.0.1")),
        ("https://builder.example:2376", ("builder.example", "0.0.0.0")),  # noqa: S104 - it is what we test
    ],
)
def test_where_clients_reach_the_servers(engine: str, expected: tuple[str, str]) -> None:
    assert published_at(engine) == expected


def test_an_engine_over_ssh_is_refused() -> None:
    with pytest.raises(EngineNotFound, match="ssh"):
        published_at("http+docker://ssh")


def shown(program: str, **environment: str) -> str:
    """The last line that a person sees."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


START = "from zkelect.testing.docker import DockerEnsemble; DockerEnsemble().start()"


def test_who_has_no_engine_is_told_what_to_do() -> None:
    line = shown(START, DOCKER_HOST="unix:///nowhere/docker.sock")
    assert line.startswith(
        "zkelect.testing.docker_errors.EngineNotFound: no Docker ensemble can be started: "
        "no engine answers at unix:///nowhere/docker.sock ("
    )
    assert "No such file or directory" in line
    assert line.endswith("be root or in the group docker")


@pytest.mark.parametrize("library", ["docker", "requests"])
def test_who_has_no_sdk_is_told_what_to_install(library: str) -> None:
    """Until it is started, the ensemble needs none."""
    line = shown(f"import sys; sys.modules['{library}'] = None; {START}")
    assert line == (
        "zkelect.testing.docker_errors.EngineNotFound: no Docker ensemble can be started: "
        "Docker's SDK for Python is missing: pip install 'zkelect[docker]'"
    )


def test_another_missing_module_is_not_taken_for_the_sdk() -> None:
    line = shown(f"import sys; sys.modules['zkelect.testing.delay'] = None; {START}")
    assert line.startswith("ModuleNotFoundError")


# --- the commands of the faults ----------------------------------------------------------------


def rules(fault: Fault) -> list[str]:
    head, *lines, end, empty = firewall(fault).split("\n")
    assert (head, end, empty) == ("*filter", "COMMIT", "")
    assert lines[:2] == [":INPUT ACCEPT", ":OUTPUT ACCEPT"]
    return lines[2:]


def test_a_whole_network_has_no_rules() -> None:
    assert rules(Fault()) == []


def test_an_isolated_server_still_reaches_itself() -> None:
    assert rules(Fault(isolated=True)) == ["-A INPUT ! -i lo -j DROP", "-A OUTPUT ! -o lo -j DROP"]


def test_deaf_to_some() -> None:
    assert rules(Fault(deaf_to=frozenset(ADDRESSES[:2]))) == [
        "-A INPUT -s 10.0.0.2 -j DROP",
        "-A INPUT -s 10.0.0.3 -j DROP",
    ]


def test_loss_comes_before_the_queue_whose_verdict_is_final() -> None:
    assert rules(Fault(loss=0.25, queued=True)) == [
        "-A OUTPUT ! -o lo -m statistic --mode random --probability 0.250000 -j DROP",
        "-A OUTPUT ! -o lo -j NFQUEUE --queue-num 0 --queue-bypass",
    ]


def test_latency_by_netem() -> None:
    command = "tc qdisc replace dev eth0 root netem delay 50000us limit 100000"
    assert " ".join(netem(0.05)) == command
    assert " ".join(netem(0)) == "tc qdisc delete dev eth0 root"


def test_connections_that_lost_packets_are_ended() -> None:
    assert reset(Fault(loss=1.0)) == ()
    assert " ".join(reset(Fault(isolated=True))) == "ss -K -t -H"
    deaf = Fault(deaf_to=frozenset(ADDRESSES[:2]))
    assert " ".join(reset(deaf)) == "ss -K -t -H dst 10.0.0.2 or dst 10.0.0.3"


# --- a network that is broken and healed -------------------------------------------------------


class Tools:
    """Programs that only note that they were run; ``tc`` fails where there is no netem."""

    def __init__(self) -> None:
        self.run_at: list[tuple[int, str]] = []
        self.texts: dict[int, str] = {}
        self.without: set[str] = set()

    def run(self, index: int, command: Sequence[str], *, text: str = "") -> str:
        if command[0] in self.without:
            raise NetworkUnavailable([f"{command[0]}: it does not go"])
        self.run_at.append((index, " ".join(command)))
        if text:
            self.texts[index] = text
        return ""


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def network(tools: Tools) -> DockerNetwork:
    owners: Any = [SimpleNamespace(attrs={"State": {"Pid": 1}}, id=f"c{n}") for n in range(3)]
    toolbox: Any = tools
    return DockerNetwork(owners, ADDRESSES, toolbox)


def test_faults_add_up(network: DockerNetwork, tools: Tools) -> None:
    network.deafen(0, [1])
    network.deafen(0, [2])
    network.isolate(0)
    network.slow(0, 0.0, 0.5)
    whole = Fault(deaf_to=frozenset(ADDRESSES[1:]), isolated=True, loss=0.5)
    assert tools.texts == {0: firewall(whole)}


def test_healing_undoes_all_and_ends_connections(network: DockerNetwork, tools: Tools) -> None:
    network.deafen(1, [0])
    network.slow(2, 0.05, 0.0)
    network.slow(2, 0.1, 0.0)
    del tools.run_at[:]
    network.heal(end_connections=True)
    assert tools.run_at == [
        (1, "iptables-restore"),
        (2, "iptables-restore"),
        (2, "tc qdisc delete dev eth0 root"),
        (1, "ss -K -t -H dst 10.0.0.2"),
    ]
    assert tools.texts == {1: firewall(Fault()), 2: firewall(Fault())}
    del tools.run_at[:]
    network.heal(end_connections=True)
    assert tools.run_at == []


def test_what_could_not_be_healed_is_healed_the_next_time(
    network: DockerNetwork, tools: Tools
) -> None:
    network.isolate(0)
    tools.without = {"iptables-restore"}
    with pytest.raises(NetworkUnavailable):
        network.heal(end_connections=False)
    tools.without = set()
    network.heal(end_connections=False)
    assert tools.texts == {0: firewall(Fault())}


def test_without_netem_it_takes_root_on_the_engine_s_machine(
    network: DockerNetwork, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process 1 of this machine is in no container c0, so the engine is elsewhere."""
    tools.without = {"tc"}
    for user in (0, 1000):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        with pytest.raises(NetworkUnavailable, match=r"it does not go; .*modprobe sch_netem"):
            network.slow(0, 0.05, 0.0)
    assert tools.texts == {}
    network.slow(0, 0.0, 0.0)


# --- the programs ------------------------------------------------------------------------------


class Box:
    """A container in which programs end by a status that was chosen before."""

    name = "box"

    def __init__(self, status: int, output: str = "") -> None:
        self.status, self.output, self.removed = status, output, False
        self.commands: list[Sequence[str]] = []

    def exec_run(self, command: Sequence[str]) -> SimpleNamespace:
        self.commands.append(command)
        return SimpleNamespace(exit_code=self.status, output=self.output.encode())

    def remove(self, **_: object) -> None:
        self.removed = True


class Maker:
    """A project, and its engine, that start the boxes one after the other."""

    def __init__(self, *boxes: Box, built: str | Exception = "built:1") -> None:
        self.boxes, self.built, self.engine = list(boxes), built, self
        self.run_with: list[tuple[str, str, dict[str, Any]]] = []

    def run(self, name: str, image: str, **options: Any) -> Box:
        self.run_with.append((name, image, options))
        return self.boxes.pop(0)

    def ensure_image(self, name: str) -> None:
        pass

    def build(self, lines: str) -> str:
        if isinstance(self.built, Exception):
            raise self.built
        return self.built


def toolbox(maker: Maker) -> Toolbox:
    owners: Any = [SimpleNamespace(id="c0"), SimpleNamespace(id="c1")]
    project: Any = maker
    return Toolbox(project, owners, "zookeeper:3.8")


def test_a_program_runs_beside_the_server_with_one_right() -> None:
    maker, box = Maker(), Box(0, "done\n")
    maker.boxes = [box]
    tools = toolbox(maker)
    assert tools.run(1, ("iptables-restore",), text="*filter\nit's\n") == "done"
    tools.run(1, ("tc", "qdisc"))
    ((name, image, options),) = maker.run_with
    assert (name, image) == ("tools-2", "zookeeper:3.8")
    assert options["network_mode"] == "container:c1"
    assert options["cap_add"] == ["NET_ADMIN"]
    _look, first, _second = box.commands
    piped = subprocess.run([*first[:2], first[2].replace("iptables-restore", "cat")],
                           capture_output=True, text=True, check=True)  # fmt: skip
    assert piped.stdout == "*filter\nit's\n"


def test_a_program_that_fails_shows_what_it_printed() -> None:
    box = Box(0)
    tools = toolbox(Maker(box))
    tools.run(0, ("tc", "qdisc"))
    box.status, box.output = 2, "Error: Specified qdisc kind is unknown."
    with pytest.raises(NetworkUnavailable, match=r"tc qdisc 'a b': Error: Specified qdisc kind"):
        tools.run(0, ("tc", "qdisc", "a b"))


def test_an_image_without_the_programs_is_built_upon() -> None:
    bare, full, other = Box(127), Box(0), Box(0)
    maker = Maker(bare, full, other)
    tools = toolbox(maker)
    tools.run(0, ("tc",))
    tools.run(1, ("tc",))
    assert bare.removed
    assert [image for _, image, _ in maker.run_with] == ["zookeeper:3.8", "built:1", "built:1"]


def test_programs_that_cannot_be_added_are_told() -> None:
    tools = toolbox(Maker(Box(127), built=EngineFailed("build", "no network")))
    with pytest.raises(NetworkUnavailable, match=r"zookeeper:3.8 lacks .*no network.*tools_image"):
        tools.run(0, ("tc",))


def test_programs_are_added_by_the_image_s_own_packages() -> None:
    lines = dockerfile("zookeeper:3.8")
    assert lines.startswith("FROM zookeeper:3.8\nUSER root\nRUN ")
    for installer in ("apk add", "apt-get install"):
        assert installer in lines
