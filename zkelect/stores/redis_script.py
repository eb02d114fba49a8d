"""The Lua that a guarded Redis runs: one script compares the mark and the server, and writes.

Redis runs a script alone, from its begin to its end (Redis documentation, "Scripting with
Lua", "Script atomicity"): nobody writes between the comparison and the write. What is compared
is text, whole: a Lua number is a float of 53 bits, a token has 64.

Every script but LOOK gets the mark's key as KEYS[1], and what was seen: ARGV[1], the mark's
text, empty for none, and ARGV[2], the line of INFO that names the server's history. A history
is of one process, between one promotion and the next demotion (Redis documentation,
"Replication", "Replication ID explained").
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

import attrs

__all__ = ["COMMAND", "DELETE", "LOOK", "RAISE", "Script", "guarded"]

_OWN_ARGUMENTS: Final = 2
_REMEMBERED: Final = 512  # texts of users' scripts


@attrs.frozen
class Script:
    """A script and the name under which a server keeps it."""

    text: str
    sha: str = attrs.field(init=False)

    @sha.default
    def _digest(self) -> str:
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_GUARD: Final = """\
do
  local info = redis.call('INFO', 'replication')
  if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1]
    or not string.find(info, 'role:master', 1, true)
    or not string.find(info, ARGV[2], 1, true) then
    return {0, redis.call('GET', KEYS[1]), redis.call('INFO', 'server'), info}
  end
end
"""

LOOK: Final = Script("""\
return {redis.call('GET', KEYS[1]), redis.call('INFO', 'server'),
  redis.call('INFO', 'replication'), redis.call('INFO', 'memory')}
""")
"""Return the mark and what the server tells of itself."""

RAISE: Final = Script(
    _GUARD
    + """\
redis.call('SET', KEYS[1], ARGV[3])
return {1}
"""
)
"""Replace the mark that was seen by ARGV[3]."""

COMMAND: Final = Script(
    _GUARD
    + """\
return {1, redis.call(ARGV[3], KEYS[2], unpack(ARGV, 4))}
"""
)
"""Run the command ARGV[3] on the key KEYS[2], with the rest of ARGV, under the mark seen."""

DELETE: Final = Script(
    _GUARD
    + """\
return {1, redis.call('DEL', unpack(KEYS, 2))}
"""
)
"""Delete the rest of KEYS under the mark that was seen."""


@lru_cache(maxsize=_REMEMBERED)
def guarded(lua: str) -> Script:
    """Return a script that runs this one under the mark that was seen.

    It has KEYS and ARGV of its own, as if it were alone.
    """
    return Script(f"""{_GUARD}
local function body(KEYS, ARGV)
{lua}
end
return {{1, body({{unpack(KEYS, 2)}}, {{unpack(ARGV, {_OWN_ARGUMENTS + 1})}})}}
""")
