"""A leader that a store refuses: its term is over, its service goes on behind the others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import attrs

from zkelect import stores

if TYPE_CHECKING:
    from collections.abc import Callable

    from election.actor import Actor

    from zkelect import Leadership


def test_a_fenced_leader_stands_again_and_its_next_term_passes(
    cast: Callable[..., Actor],
) -> None:
    """Fenced is final for the term, not for the service (design, section 8)."""
    election = cast("a").election
    fence = stores.MemoryFence(domain="billing")
    stop = threading.Event()
    terms: list[Leadership] = []

    def lead(leadership: Leadership) -> None:
        terms.append(leadership)
        fence.claim(leadership)
        if len(terms) == 1:
            newer = attrs.evolve(
                leadership.token, czxid=leadership.token.czxid + 1, holder="0" * 16
            )
            fence.claim(newer)  # a successor that we have not heard of
        with fence.transaction(leadership) as log:
            log.append("row")
        stop.set()

    election.run_forever(lead, stop=stop)
    assert [str(term.reason) for term in terms] == ["fenced", "resigned"]
    assert terms[1].token > terms[0].token
    assert [token for token, _ in fence.log] == [terms[1].token]
