"""H57: a writer that is killed at any step, a power cut at any step, and both."""

from __future__ import annotations

import itertools
import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stores.bearers import make_token
from stores.benches import marked
from stores.conftest import Writer, starting
from stores.file_bench import FileBench
from stores.powercut import Died, File, Recorder

from zkelect.errors import Fenced, FenceStateLost, RequestFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stores.powercut import State

    from zkelect.token import Token

    MakeToken = Callable[..., Token]
    StartWriter = Callable[..., Writer]

WRITER = Path(__file__).with_name("file_writer.py")


@pytest.fixture
def bench(tmp_path: Path) -> FileBench:
    return FileBench(tmp_path)


@pytest.fixture
def writer(bench: FileBench) -> Iterator[StartWriter]:
    """Start a process that leads with this token and replaces the bench's file."""
    with starting(bench.path, WRITER) as start:
        yield start


# --- killed ----------------------------------------------------------------------------------


def test_h57_a_writer_killed_at_each_step_leaves_the_mark_never_behind_the_file(
    bench: FileBench, token: MakeToken, writer: StartWriter
) -> None:
    steps, answers, appended = 0, ["", ""], 0
    while answers != ["claimed", "appended"]:
        mortal = writer(token(steps), "--die-at", str(steps))
        answers = [mortal.does("claim"), mortal.does("append")]
        mortal.kill()
        mark = marked(bench.fence())
        assert all(mark is not None and written <= mark for written, _ in bench.log())
        bench.fence().claim(token(steps))  # the next one finds no lock
        assert not [file for file in bench.path.parent.iterdir() if file.match("*-draft")]
        steps += 1
        appended += [written for written, _ in bench.log()].count(token(steps - 1))
    assert steps > 30
    assert appended > 1  # the last one, and those killed between their rename and their answer


@pytest.mark.parametrize("lines", range(6))
def test_h57_a_writer_killed_anywhere_loses_no_acknowledged_file(
    bench: FileBench, token: MakeToken, writer: StartWriter, lines: int
) -> None:
    hammering = writer(token(5))
    assert hammering.does("claim") == "claimed"
    hammering.order("hammer")
    acknowledged = [hammering.answer() for _ in range(10 + lines)]
    hammering.kill()
    acknowledged += iter(hammering.answer, "")
    assert len(bench.log()) - len(acknowledged) in (0, 1)


# --- power cuts --------------------------------------------------------------------------------


class Story:
    """What leaders do to one file, and what they may count on.

    :ivar logs: every content that the file had or was to get. :ivar kept: which of them at
        least must be there after a power cut. :ivar mark: which mark at least.
    :ivar found: which of them the claimant finds: under its mark, none from before.
    """

    def __init__(self, bench: FileBench) -> None:
        self.bench = bench
        self.logs: list[list[tuple[Token, str]]] = [[]]
        self.kept = self.found = 0
        self.mark: Token | None = None
        self.claimant: Token | None = None

    def claim(self, token: Token) -> None:
        self.claimant, self.found = token, self.logs.index(self.bench.log())
        self.bench.fence().claim(token)
        self.mark, self.kept = token, self.found

    def append(self, token: Token) -> None:
        self.logs.append([*self.bench.log(), (token, str(len(self.logs)))])
        fence = self.bench.fence()
        fence.claim(token)
        self.bench.write(fence, token, str(len(self.logs) - 1))
        self.kept = len(self.logs) - 1

    def judge(self, bench: FileBench) -> None:
        """Hold the store to its word, on what a power cut has left."""
        mark, log = marked(bench.fence()), bench.log()
        assert log in self.logs, "torn"
        assert self.logs.index(log) >= self.kept, "what was acknowledged is gone"
        assert self.mark is None or (mark is not None and mark >= self.mark)
        assert not log or (mark is not None and log[-1][0] <= mark), "the mark is behind the file"
        if mark is not None and mark == self.claimant:
            assert self.logs.index(log) >= self.found, "an older file under a newer mark"


def judge_successor(bench: FileBench) -> None:
    """Whatever was left, the next leader goes on from it, and the last one is stopped."""
    mark, log, successor = marked(bench.fence()), bench.log(), make_token(1000)
    bench.fence().claim(successor)
    bench.write(bench.fence(), successor, "next")
    assert bench.log() == [*log, (successor, "next")]
    assert not [file for file in bench.path.parent.iterdir() if file.match("*-draft")]
    if mark is not None:
        with pytest.raises(Fenced):
            bench.fence().replace(mark, b"stale")


class Lab:
    """A folder on a recorder, a story in it, and a judge of every state a power cut may leave."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged = 0
        self._root, self._monkeypatch = root, monkeypatch
        self._seen: set[object] = set()
        self._numbers = itertools.count()
        monkeypatch.setattr("uuid.uuid4", lambda: uuid.UUID(int=next(self._numbers)))

    def begin(self) -> Story:
        folder = self._root / f"story-{len(list(self._root.iterdir()))}"
        folder.mkdir()
        self.story, self.recorder = Story(FileBench(folder)), Recorder(folder)
        self._numbers = itertools.count(1)  # so that stories come to equal states
        self.install(self.recorder)
        return self.story

    def install(self, system: Any) -> None:
        for module in ("folder", "flock"):
            self._monkeypatch.setattr(f"zkelect.stores.{module}.os", system)

    def watch(self) -> None:
        """Cut the power after each step from now on."""
        self.recorder.told = self.look

    def look(self) -> None:
        """Cut the power now, in every way."""
        for state in self.recorder.disk.states():
            story = self.story
            content = frozenset((name.rpartition("-")[2], data) for name, data in state.items())
            case = (content, story.kept, story.found, story.mark, story.claimant)
            if case not in self._seen:
                self._seen.add(case)
                self._judge(state)

    def _judge(self, state: State) -> None:
        self.judged += 1
        folder = self._root / f"state-{self.judged}"
        folder.mkdir()
        for name, content in state.items():
            (folder / name).write_bytes(content)
        numbers, self._numbers = self._numbers, itertools.count(1000)
        self.install(Undurable())
        self.story.judge(FileBench(folder))
        judge_successor(FileBench(folder))
        self.install(self.recorder)
        self._numbers = numbers


class Undurable:
    """The module os, for folders that nobody needs tomorrow."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, _: int) -> None:
        pass


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, monkeypatch)


def lead(story: Story, token: Token) -> None:
    story.claim(token)
    story.append(token)
    story.append(token)


def test_h57_a_power_cut_at_any_step_leaves_no_older_file_under_a_newer_mark(
    lab: Lab, token: MakeToken
) -> None:
    story = lab.begin()
    lab.watch()
    lead(story, token(5))
    lead(story, token(6))
    assert lab.judged > 100


def test_h57_nor_does_one_after_the_death_of_the_writer_at_any_step(
    lab: Lab, token: MakeToken
) -> None:
    for last in itertools.count():
        story = lab.begin()
        lab.recorder.last = last
        with suppress(Died):
            story.claim(token(5))
            story.append(token(5))
            break
        lab.recorder.last = None
        lab.watch()
        story.claim(token(6))
        story.append(token(6))
    assert last > 20


def test_h57_a_claim_makes_durable_what_it_finds(lab: Lab, token: MakeToken) -> None:
    """A file from before the first claim: whoever wrote it may not have synced it."""
    story = lab.begin()
    path, log = story.bench.path, [(token(1), "found")]
    path.write_text(json.dumps([(str(token(1)), "found")]), "utf-8")
    lab.recorder.disk.change((path.name, File(versions=[path.read_bytes()])))
    story.logs = [log]
    story.claim(token(5))
    lab.look()
    assert lab.judged == 1


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_control_without_fsync_the_same_judge_finds_losses(
    lab: Lab, token: MakeToken, kind: str
) -> None:
    story = lab.begin()
    lab.recorder.ignored = kind
    lab.watch()
    with pytest.raises((AssertionError, FenceStateLost, RequestFailed)):
        lead(story, token(5))
