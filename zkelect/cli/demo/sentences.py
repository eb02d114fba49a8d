"""What the demo says of each event, in plain English and plain ASCII: any terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from zkelect.cli.demo.candidate import SESSION_TIMEOUT
from zkelect.cli.demo.event import Event
from zkelect.token import Token

__all__ = ["ACTS", "figures", "say", "say_duration", "shorten"]

ACTS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        1: (
            "Election",
            "Three processes stand. One is elected; the others queue, in order.",
        ),
        2: (
            "Planned handover",
            "The leader resigns. Its heir leads at once, and nobody else is woken.",
        ),
        3: (
            "Frozen leader",
            "A leader stopped between two rows wakes too late: its next row is refused.",
        ),
        4: (
            "Killed leader",
            f"The leader dies without a word; its session ends {SESSION_TIMEOUT:g} s later.",
        ),
    }
)

_SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "servers_launched": "ZooKeeper is starting from {origin}",
        "servers_ready": "ZooKeeper {version} serves at {hosts}",
        "connected": "has a session with ZooKeeper, as process {pid}",
        "stood": "stands for election",
        "elected": "is elected with token {token}",
        "claimed": "claims the log: it refuses every lower token from now on",
        "queued": "queue: {queue}",
        "committed": "appends rows from number {row} on",
        "watchers_listed": "its znode is watched by its heir and itself: no one else is woken",
        "resigned": "resigns after row {last}",
        "handed_over": "leads {took} after {former} resigned",
        "held": "has committed row {last} and turns to the next one",
        "frozen": "is frozen before it begins (SIGSTOP to process {pid})",
        "lapsed": "its lease has run out, but it cannot notice",
        "failed_over": "leads {took} after {former} fell silent",
        "woken": "is woken (SIGCONT) and goes on with its next row",
        "check_failed": "1st defence, no network: its own check fails ({reason})",
        "lost": "has lost its leadership ({reason})",
        "refused": "2nd defence, at the log: the row is refused, its token is stale",
        "accepted": "writes row {row} with stale token {token}: NOT REFUSED",
        "killed": "is killed (SIGKILL to process {pid}) after row {last}",
    }
)
_BLOWS: Final = {"frozen": "SIGSTOP", "killed": "SIGKILL"}
_HERD: Final = "its znode is watched by {watchers} sessions, {others} of them in vain"
_COUNTED: Final = (
    ("overlapping leases", "lease_overlaps", "leaders elected before the last lease was over"),
    ("rows in the log", "rows", "in the order of their commits"),
    ("rows acknowledged", "acked", "by their writers, once they were durable"),
    ("acknowledged, lost", "acked_lost", "acknowledged, but not in the log"),
    ("stale, refused", "stale_refused", "writes that came with too low a token"),
    ("stale, accepted", "stale_accepted", "rows with a token below one before them"),
)


def say(event: Event, *, last: int) -> str | None:
    """Return the sentence for an event; None for one that is not told in words.

    :param last: number of the latest row.
    """
    herd = event.kind == "watchers_listed" and event["others"] > 0
    sentence = _HERD if herd else _SENTENCES.get(event.kind)
    return None if sentence is None else sentence.format(last=last, **_words(event.facts))


def shorten(token: str) -> str:
    """Return generation and czxid in hex: they alone order the tokens of one ensemble."""
    parsed = Token.parse(token)
    return f"{parsed.generation:x}:{parsed.czxid:x}"


def say_duration(seconds: float) -> str:
    """Return a duration as people say it."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def figures(summary: Event) -> Iterator[tuple[str, str, str]]:
    """Give the lines of the account at the end: what, how much, and a remark."""
    yield "elections", f"{summary['elections']}", ", ".join(summary["leaders"])
    yield "tokens, in order", "", " < ".join(map(shorten, summary["tokens"]))
    if summary["hand_over_seconds"] is not None:
        took = say_duration(summary["hand_over_seconds"])
        yield "hand-over", took, "from the resignation to the next leader"
    for end, seconds in summary["fail_over_seconds"].items():
        yield "fail-over", say_duration(seconds), f"from {_BLOWS[end]} to the next leader"
    for what, fact, remark in _COUNTED:
        yield what, f"{summary[fact]}", remark


def _words(facts: Mapping[str, Any]) -> dict[str, Any]:
    words = dict(facts)
    if "token" in facts:
        words["token"] = shorten(facts["token"])
    if "took" in facts:
        words["took"] = say_duration(facts["took"])
    if "hosts" in facts:
        words["hosts"] = _addresses(facts["hosts"])
    if "queue" in facts:
        words["queue"] = _queue(facts["queue"])
    return words


def _queue(names: Sequence[str]) -> str:
    leader, *others = names
    return ", then ".join([f"{leader} leads", *others])


def _addresses(hosts: str) -> str:
    """All servers are on one host: name it once."""
    first, *others = hosts.split(",")
    return ", ".join([first, *(f":{other.rpartition(':')[2]}" for other in others)])
