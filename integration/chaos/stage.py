"""All that takes part in one run: servers, proxies, stores, candidates, observer, operator."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from chaos.history import Writer
from chaos.interference import Operator
from chaos.metronome import Metronome
from chaos.processes import Process
from chaos.pulse import pulse
from chaos.stores import Place, Store, open_store
from zkelect.testing import FaultProxy

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from zkelect.testing import Frame
    from zkelect.testing.ensembles import FaultyEnsemble

__all__ = ["SESSION_TIMEOUT", "TICK_TIME", "Setting", "Stage"]

TICK_TIME: Final = 0.2
SESSION_TIMEOUT: Final = 2.0
_COMMITS_WITHIN: Final = 6.0
_LEAVE_WITHIN: Final = 3 * SESSION_TIMEOUT


@attrs.frozen(kw_only=True)
class Setting:
    """What a run is made of.

    :ivar directory: empty; the evidence is put there. :ivar path: of the election.
    :ivar stores: names in ``chaos.stores``. :ivar habits: where leaders differ from the usual.
    """

    directory: Path
    path: str
    seed: int
    stores: Sequence[str]
    candidates: int = 5
    habits: dict[str, Any] = attrs.field(factory=dict)


class Stage:
    """The run's cast, ready while the block lasts.

    :ivar leader: index of the candidate that began a term last.
    :ivar operations: how many guarded operations there have been.
    """

    def __init__(self, ensemble: FaultyEnsemble, setting: Setting) -> None:
        self.ensemble, self.setting = ensemble, setting
        self.history = Writer(setting.directory, "director")
        self.leader = 0
        self.operations = 0
        self.proxies: list[FaultProxy] = []
        self.candidates: list[Process] = []
        self.stores: dict[str, Store] = {}
        self._slowness: dict[int, dict[str, float]] = {}
        self._starts = [0] * setting.candidates
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._open(opened)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    # --- what faults ask for ----------------------------------------------------------------

    def server(self, dice: random.Random, mode: str) -> int:
        """Return the index of a server that runs in this mode, or of any that runs."""
        awake = [
            index
            for index, server in enumerate(self.ensemble.servers)
            if server.running and not server.paused
        ]
        fits = [index for index in awake if self.ensemble.servers[index].mode == mode]
        return dice.choice(fits or awake)

    def slow(self, index: int, **what: float) -> None:
        """Delay or lose what a server sends, beside what it suffers already."""
        suffers = self._slowness.setdefault(index, {"latency": 0.0, "loss": 0.0})
        suffers.update(what)
        self.ensemble.slow(index, **suffers)

    def heal(self) -> None:
        """Undo every fault of the network between the servers."""
        self._slowness.clear()
        self.ensemble.heal()

    def revive(self) -> None:
        """Start each server and candidate anew that is dead."""
        for server in self.ensemble.servers:
            if not server.running:
                server.launch()
        for index, process in enumerate(self.candidates):
            if process.status is not None:
                name = self._name(index)
                self.history.write("exited", process=name, status=process.status)
                process.kill()
                self.candidates[index] = self._start(index)

    def wait_served(self) -> None:
        """Wait until the ensemble has come to itself: all serve, one leads them, and it commits.

        One that serves and commits nothing gets what its operator would give it: its leader is
        restarted. That is written down, and told in the report.
        """
        while True:
            self.ensemble.wait_ready()
            leader = self.ensemble.leader()
            if self._pulse.beat(_COMMITS_WITHIN):
                return
            self.history.write("stalled", server=leader + 1)
            self.ensemble.servers[leader].kill()
            self.ensemble.servers[leader].launch()

    # --- the end ----------------------------------------------------------------------------

    def leave(self) -> None:
        """Let all candidates leave; one that does not leave in time is killed, and told."""
        for process in self.candidates:
            process.order("leave")
        for index, process in enumerate(self.candidates):
            if not process.wait(_LEAVE_WITHIN):
                self.history.write("stuck", process=self._name(index))
            process.kill()

    def call_the_roll(self, moment: str) -> None:
        """Have the observer write who stands."""
        self._observer.order(moment)

    @property
    def rolls(self) -> Sequence[int]:
        """How many stood at each call, as far as the observer has answered."""
        return self._rolls

    # --- within -----------------------------------------------------------------------------

    def _open(self, opened: ExitStack) -> None:
        setting, hosts = self.setting, self.ensemble.hosts
        opened.enter_context(Metronome(self.history))
        place = Place(directory=setting.directory, hosts=hosts)
        for name in setting.stores:
            self.stores[name] = open_store(name, place)
            opened.enter_context(self.stores[name].serve())
        self._pulse = opened.enter_context(pulse(hosts))
        self._operator = opened.enter_context(Operator(hosts, setting.path, self.history))
        self._rolls: list[int] = []
        where = {"hosts": hosts, "path": setting.path, "directory": str(setting.directory)}
        self._observer = Process(
            "observer",
            where,
            told=lambda line: self._rolls.append(int(line)),
            log=setting.directory / "observer.log",
        )
        opened.callback(self._observer.kill)
        opened.callback(self._kill_all)
        for index in range(setting.candidates):
            self.proxies.append(opened.enter_context(self._proxy(index)))
            self.candidates.append(self._start(index))

    def _kill_all(self) -> None:
        for process in self.candidates:
            process.kill()

    def _proxy(self, index: int) -> FaultProxy:
        path = self.setting.path

        def told(frame: Frame) -> None:
            """Note who is woken by a watch in the queue."""
            if frame.name == "event" and frame.passed and frame.paths[:1] != ("",):
                for woken in frame.paths:
                    if woken == path or woken.startswith(f"{path}/"):
                        self.history.write("woken", candidate=index + 1, path=woken)

        return FaultProxy(self.ensemble.hosts, told=told)

    def _name(self, index: int) -> str:
        return f"c{index + 1}.{self._starts[index]}"

    def _start(self, index: int) -> Process:
        self._starts[index] += 1
        name = self._name(index)
        settings = {
            "process": name,
            "hosts": self.proxies[index].hosts,
            "path": self.setting.path,
            "directory": str(self.setting.directory),
            "stores": list(self.setting.stores),
            "seed": str(self.setting.seed),
            "session_timeout": SESSION_TIMEOUT,
            "tick_time": TICK_TIME,
            "habits": self.setting.habits,
        }
        log = self.setting.directory / f"{name}.log"
        return Process("candidate", settings, told=lambda line: self._hear(index, line), log=log)

    def _hear(self, index: int, line: str) -> None:
        """Take what a candidate prints: that it leads, wrote, or has an order for the operator."""
        match line:
            case "leads":
                self.leader = index
            case "wrote":
                self.operations += 1
            case _:
                self._operator.order(line)
