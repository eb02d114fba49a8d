"""What is said to a guarded Redis, and what its replies mean: no I/O of its own.

Each conversation is a generator. It yields a :class:`Call`, and is sent the reply or thrown the
ResponseError; so the blocking fence and the asyncio fence share every line of the rule.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import attrs
from redis.crc import key_slot
from redis.exceptions import NoPermissionError, NoScriptError, ResponseError

from zkelect.errors import InvalidArgument, RequestFailed, StoreBusy, UnfitStore
from zkelect.stores.fence import Claimant, Gate, patience, present
from zkelect.stores.redis_script import COMMAND, DELETE, LOOK, RAISE, Script
from zkelect.stores.redis_server import Seen, Server, Text
from zkelect.token import Token

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zkelect.stores.mark import Mark

__all__ = ["Call", "Exchange", "Key", "Talk", "Value"]

T = TypeVar("T")
Key: TypeAlias = str | bytes
Value: TypeAlias = str | bytes | int | float

_TURNS: Final = 8
_FOR_EVER: Final = 1e12  # seconds; Redis counts milliseconds in 64 bits
_WORDS: Final = 4000  # Lua's unpack takes less than 8000
# What a server answers for its own reasons, whatever the command; redis-py has classes for most.
# Redis before 7 tells it in the middle of a sentence when a script meets it.
_OF_SERVER: Final = re.compile("(^|: -)(BUSY|MISCONF|NOREPLICAS|OOM|READONLY) ")
_DENIED: Final = re.compile("can't run this command|ACL failure in script")


@attrs.frozen
class Call:
    """One request to the server.

    :ivar request: how messages name it. :ivar claimant: whose lease bounds the waiting.
    """

    words: tuple[Value, ...]
    request: str
    claimant: Claimant | None = None

    def patience(self, timeout: float) -> float:
        """Return how many seconds to wait for the reply; to connect may have used up the lease.

        :raises Lost: the leadership is over, or suspended; nothing was sent.
        """
        if self.claimant is None:
            return timeout
        seconds = patience(self.claimant, timeout)
        if seconds <= 0:
            present(self.claimant)
        return seconds


Talk: TypeAlias = Generator[Call, Any, T]


class Exchange:
    """All that one fence says, for one domain of one server."""

    def __init__(self, *, store: str, domain: str) -> None:
        self._gate = Gate(store=store, domain=domain, volatile=True, lock=threading.Lock())
        self._tag = _tag(domain)
        self._key = f"zkelect:{self._tag}"
        self._seen: Seen | None = None  # what a write is judged by first; the server compares it
        self._passed: tuple[Seen, Claimant, Token | None] | None = None

    @property
    def store(self) -> str:
        """How refusals name the store."""
        return self._gate.store

    def key(self, name: str) -> str:
        """Return a key in the slot of the mark."""
        return f"{self._tag}:{name}"

    def status(self) -> Talk[Mark | None]:
        """Return the mark; leaves no trace."""
        return (yield from self._look("status")).mark

    def claim(self, claimant: Claimant, *, initialize: bool = False) -> Talk[None]:
        """Look, judge, and replace the mark that was judged; look again if it has changed."""
        present(claimant)
        for _ in range(_TURNS):
            seen = yield from self._look("claim", claimant)
            if detail := seen.server.unfit():
                raise self._gate.refuse(UnfitStore, claimant, detail)
            mark = self._gate.claim(seen.mark, claimant, origin=seen.origin, initialize=initialize)
            if mark == seen.mark or (yield from self._raise(seen, mark, claimant)):
                self._gate.confirm(mark)
                self._seen = Seen.of(str(mark), seen.server)
                return
        raise self._gate.refuse(StoreBusy, claimant, f"the mark changed {_TURNS} times meanwhile")

    def command(self, claimant: Claimant, key: Key, *words: Value) -> Talk[Any]:
        """Run one command on one key, its name and its arguments, under the claimant's mark."""
        return self.write(claimant, COMMAND, (key,), words)

    def delete(self, claimant: Claimant, keys: tuple[Key, ...]) -> Talk[int]:
        """Delete keys under the claimant's mark."""
        return self.write(claimant, DELETE, keys, ())

    def hset(self, claimant: Claimant, key: Key, fields: Mapping[Key, Value]) -> Talk[int]:
        """Set fields of a hash under the claimant's mark."""
        words = (word for field in fields.items() for word in field)
        return self.command(claimant, key, "HSET", *words)

    def set(self, claimant: Claimant, key: Key, value: Value, *, expire: float | None) -> Talk[Any]:
        """Set a key under the claimant's mark."""
        options = () if expire is None else ("PX", _milliseconds(expire))
        return self.command(claimant, key, "SET", value, *options)

    def write(
        self, claimant: Claimant, script: Script, keys: tuple[Key, ...], words: tuple[Value, ...]
    ) -> Talk[Any]:
        """Run a guarded script under the claimant's mark."""
        _check_words(keys, words)
        token = present(claimant)
        if isinstance(claimant, Token) and claimant != self._gate.floor:
            yield from self.claim(claimant)
        seen = self._seen
        if seen is None or seen.token != token:
            seen = yield from self._look("write", claimant)
        for _ in range(_TURNS):
            self._judge(seen, claimant)
            self._check_slots(keys, seen.server)
            passed, *answer = yield from self._evaluate(
                script, keys, (*seen.proof, *words), claimant, "write"
            )
            if passed:
                return _value(answer)
            seen = self._refused(seen, answer, claimant)
        raise self._gate.refuse(StoreBusy, claimant, f"the mark changed {_TURNS} times meanwhile")

    def unsent(self, call: Call, error: Exception) -> RequestFailed:
        """Tell that no server was there to ask."""
        return RequestFailed(self.store, call.request, f"not connected, nothing was sent: {error}")

    def unanswered(self, call: Call, error: Exception) -> RequestFailed:
        """Tell that the reply did not come: of a claim one may say it again."""
        detail = f"no reply, so it may or may not have been done: {error}"
        if call.request == "claim":
            detail += "; claim again with the same token"
        return RequestFailed(self.store, call.request, detail)

    def _judge(self, seen: Seen, claimant: Claimant) -> None:
        """Ask the rule; not again about what has passed: it is a function of these three."""
        asked = (seen, claimant, self._gate.floor)
        if self._passed is not None and all(map(is_, asked, self._passed)):
            return
        if seen.server.role != "master":
            raise self._gate.refuse(UnfitStore, claimant, seen.server.unfit())
        self._gate.guard(seen.mark, claimant, origin=seen.origin)
        self._seen = seen
        self._passed = (seen, claimant, self._gate.floor)

    def _refused(self, judged: Seen, answer: list[Any], claimant: Claimant) -> Seen:
        """Return what the script found: the rule refuses it, or something has changed."""
        seen = self._read(*answer)
        self._judge(seen, claimant)
        if seen.proof == judged.proof:
            raise RequestFailed(
                self.store, "write", "the script refused what the rule lets pass: a bug, report it"
            )
        return seen

    def _look(self, request: str, claimant: Claimant | None = None) -> Talk[Seen]:
        answer = yield from self._evaluate(LOOK, (), (), claimant, request)
        return self._read(*answer)

    def _raise(self, seen: Seen, mark: Mark, claimant: Claimant) -> Talk[bool]:
        answer = yield from self._evaluate(RAISE, (), (*seen.proof, str(mark)), claimant, "claim")
        return bool(answer[0])

    def _evaluate(
        self,
        script: Script,
        keys: tuple[Key, ...],
        words: tuple[Value, ...],
        claimant: Claimant | None,
        request: str,
    ) -> Talk[list[Any]]:
        operands = (1 + len(keys), self._key, *keys, *words)
        try:
            try:
                answer: list[Any] = yield Call(
                    ("EVALSHA", script.sha, *operands), request, claimant
                )
            except NoScriptError:  # nothing ran; EVAL also leaves the script with the server
                answer = yield Call(("EVAL", script.text, *operands), request, claimant)
        except ResponseError as error:
            if request == "write" and not _of_server(error):
                raise
            raise RequestFailed(self.store, request, _told(error)) from error
        return answer

    def _read(self, text: Text | None, *sections: Text) -> Seen:
        try:
            self._seen = None
            return Seen.of(text, Server.parse(*sections))
        except InvalidArgument as error:
            raise RequestFailed(self.store, "reading the mark", str(error)) from error

    def _check_slots(self, keys: tuple[Key, ...], server: Server) -> None:
        """In a cluster a script may touch one slot (Redis Cluster specification, "Hash tags")."""
        if not server.clustered:
            return
        for key in keys:
            if _slot(key) != _slot(self._key):
                expected = f"a key in the hash slot of the mark: with {self._tag} in it, see key()"
                raise InvalidArgument("key", key, expected)


def _tag(domain: str) -> str:
    """Return the domain as a hash tag: a brace in it would end the tag, or empty it."""
    quoted = domain.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{{{quoted}}}"


def _slot(key: Key) -> int:
    return key_slot(key.encode() if isinstance(key, str) else key)


def _milliseconds(expire: float) -> int:
    if not isinstance(expire, int | float) or not 0.001 <= expire < _FOR_EVER:
        raise InvalidArgument("expire", expire, "seconds, at least 0.001, or None")
    return int(expire * 1000)


def _value(answer: list[Any]) -> Any:
    """Return what the script returned: Lua drops a nil at the end."""
    value = answer[0] if answer else None
    if isinstance(value, ResponseError):  # returned by the script, not raised
        raise value
    return value


def _of_server(error: ResponseError) -> bool:
    return type(error) is not ResponseError or _OF_SERVER.search(str(error)) is not None


def _told(error: ResponseError) -> str:
    denied = isinstance(error, NoPermissionError) or _DENIED.search(str(error))
    hint = "; the fence needs a user who may EVAL, EVALSHA, GET, SET and INFO" if denied else ""
    return f"{error}{hint}"


def _check_words(keys: tuple[Key, ...], words: tuple[Value, ...]) -> None:
    for word in (*keys, *words):
        if not isinstance(word, str | bytes | int | float) or isinstance(word, bool):
            raise InvalidArgument("value", word, "str, bytes, int or float, as redis-py takes them")
    if len(keys) + len(words) > _WORDS:
        raise InvalidArgument("values", len(keys) + len(words), f"at most {_WORDS} in one call")
