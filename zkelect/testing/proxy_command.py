"""``python -m zkelect.testing.proxy``: a fault proxy for people, to see what a client does."""

from __future__ import annotations

import argparse
import shlex
import sys
import threading
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TextIO

from zkelect.errors import ZkelectError
from zkelect.session.clock import SystemClock
from zkelect.testing.proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zkelect.testing.journal import Frame
    from zkelect.testing.proxy_rules import Rule

__all__ = ["COMMANDS", "main", "shown"]

COMMANDS: Final = """\
Commands, one a line, on standard input or by --do:

  drop_request NAME [then=cut|hang]    drop_reply NAME [then=cut|hang]
  tear_request NAME [size=6]           tear_reply NAME [size=6]
  delay_request NAME                   delay_reply NAME
  fail NAME ERROR [done=yes]           answer_stale [NAME]
  swallow_event [KIND]                 swap_session
  rewrite_connect [session_id=N] [timeout=SECONDS] [read_only=yes]
  shift_numbers PARENT BY
      each but the last also [nth=N] [times=N|all], and, where a NAME or KIND is
      possible, [path=PATTERN]: which of the frames that fit, and how many of them
  cut [requests|replies]   isolate   heal   drop   refuse   accept
  rules   release RULE   cancel RULE      a rule is called by its number
  help   quit

NAME is ZooKeeper's name of the request, as shown; create and getChildren mean every
variant, read, write and any mean many. ERROR is a code or ZooKeeper's name of it.
What each command does: pydoc zkelect.testing.FaultProxy
"""

_RULES: Final = (
    "drop_request", "drop_reply", "tear_request", "tear_reply", "delay_request", "delay_reply",
    "fail", "answer_stale", "swallow_event", "swap_session", "rewrite_connect",
)  # fmt: skip
_ACTS: Final = ("cut", "isolate", "heal", "drop", "refuse", "accept")
_YES: Final = {"yes": True, "no": False}


class _Console:
    """Obeys commands about one proxy; frames go to standard output, the rest to standard error."""

    def __init__(self, hosts: str, *, quiet: bool) -> None:
        self._began = SystemClock().boottime()
        self.proxy = FaultProxy(hosts, told=None if quiet else self._show)

    def obey(self, line: str) -> bool:
        """Do what a line says; return False when it says to quit."""
        words = shlex.split(line, comments=True)
        if not words:
            return True
        if words[0] == "quit":
            return False
        try:
            self._do(words[0], words[1:])
        except (ZkelectError, TypeError, ValueError, LookupError) as error:
            _tell(f"{line.strip()}: {error}")
        return True

    def _do(self, verb: str, words: Sequence[str]) -> None:
        proxy = self.proxy
        if verb in _RULES:
            rule = getattr(proxy, verb)(*_positional(words), **_options(words))
            _tell(f"rule {len(proxy.rules)}: {rule}")
        elif verb in _ACTS:
            getattr(proxy, verb)(*words)
        elif verb == "shift_numbers":
            parent, by = words
            proxy.shift_numbers(parent, int(by))
        elif verb == "rules":
            for number, rule in enumerate(proxy.rules, start=1):
                _tell(f"rule {number}: {_state(rule)}")
        elif verb in ("release", "cancel"):
            getattr(self._rule(*words), verb)()
        elif verb == "help":
            _tell(COMMANDS)
        else:
            raise LookupError("no such command; try help")

    def _rule(self, number: str) -> Rule:
        rules = dict(enumerate(self.proxy.rules, start=1))
        if int(number) not in rules:
            raise LookupError(f"there is no rule {number}; try rules")
        return rules[int(number)]

    def _show(self, frame: Frame) -> None:
        with suppress(BrokenPipeError):  # nobody reads any more; the proxy goes on
            print(shown(frame, frame.at - self._began), flush=True)


def main(arguments: Sequence[str] | None = None, stdin: TextIO | None = None) -> int:
    """Listen, print the hosts for clients, obey commands until ``quit`` or Ctrl-C.

    The end of standard input ends nothing: it may run in the background.
    """
    options = _parser().parse_args(arguments)
    try:
        console = _Console(options.hosts, quiet=options.quiet)
    except ZkelectError as error:
        _tell(str(error))
        return 64
    with console.proxy as proxy:
        print(proxy.hosts, flush=True)
        try:
            for line in chain(options.do, sys.stdin if stdin is None else stdin):
                if not console.obey(line):
                    return 0
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m zkelect.testing.proxy",
        description="A proxy before ZooKeeper servers that shows every frame and makes faults\n"
        "happen: at a frame, never by time. It listens on the loopback interface and\n"
        "prints the connection string for clients first.",
        epilog=COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("hosts", help="the servers: zk1:2181,zk2:2181/chroot")
    parser.add_argument(
        "--do",
        action="append",
        default=[],
        metavar="COMMAND",
        help="a command to obey first; may be given again and again",
    )
    parser.add_argument("--quiet", action="store_true", help="show no frames")
    return parser


def _positional(words: Sequence[str]) -> list[Any]:
    return [_value(word) for word in words if "=" not in word]


def _options(words: Sequence[str]) -> dict[str, Any]:
    pairs = (word.split("=", 1) for word in words if "=" in word)
    return {name: _times(value) if name == "times" else _value(value) for name, value in pairs}


def _times(word: str) -> int | None:
    return None if word == "all" else int(word)


def _value(word: str) -> Any:
    if word in _YES:
        return _YES[word]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def shown(frame: Frame, at: float) -> str:
    """Return a frame as one line; ``at`` is in seconds since the proxy began."""
    sign = ">" if frame.direction == "requests" else "<"
    words = [f"{at:10.6f} {sign} {frame.name}"]
    if frame.xid is not None:
        words.append(f"xid={frame.xid}")
    if frame.error:
        words.append(f"error={frame.error}")
    words += frame.paths
    if frame.fault or not frame.passed:
        words.append(f"[{'passed' if frame.passed else 'lost'}: {frame.fault or 'cut'}]")
    return " ".join(words)


def _state(rule: Rule) -> str:
    state = " cancelled" if rule.cancelled else ""
    return f"{rule} matches={rule.matches} firings={rule.firings}{state}"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
