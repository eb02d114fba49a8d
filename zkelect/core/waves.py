"""How a crowd comes back: in waves, each spread by jitter, over about a session timeout.

When a session ends, all its candidates lose their places at one instant, and other processes
may have lost theirs with it (H41). Who comes back at once is one of a herd that the servers
have to bear; who is alone loses nothing by coming soon.
"""

from __future__ import annotations

import math
from typing import Final

import attrs

__all__ = ["WAVE", "Waves"]

WAVE: Final = 256
"""Candidates that come back together; more come in as many waves as it takes."""

_SHARE: Final = 10
"""The first wave, which may be the only one, has come within a tenth of the session timeout."""


@attrs.define
class Waves:
    """The order in which the candidates of one session come back.

    :param timeout: the session timeout, seconds. :param crowd: how many candidates there are.
    """

    timeout: float
    crowd: int
    _drawn: int = 0

    def rest(self, chance: float) -> float:
        """Return how long the next candidate waits before it joins again, seconds.

        A crowd of any size has come within a session timeout; who asks a second time begins
        anew with the first wave.

        :param chance: from 0 to 1, drawn by the caller.
        """
        waves = max(math.ceil(self.crowd / WAVE), 1)
        wave = self._drawn // WAVE % waves
        self._drawn += 1
        return (wave + chance) * self.timeout / max(waves, _SHARE)
