"""The promises that can only be judged in a world: of grants, of last words, of a world at rest.

Somebody from outside who deletes a znode or closes a session breaks what a lease promises
(docs/lease.md). Such a candidate is ``hit`` until it has made a new znode, and its term is
not judged; everything else must hold all the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from exploration.promises import keep
from exploration.world import Candidate, Servers
from zkelect.core import events as ev
from zkelect.core.state import Phase, State

__all__ = ["check_finish", "check_grant", "check_left", "check_rest", "is_unheard"]


def check_grant(grant: ev.Grant, servers: Servers, *, heard: bool) -> None:
    """Judge a grant by what the quorum knows at that moment.

    :param heard: no watch event has been kept from it: a pause can be one.
    :raises Broken: one of the promises of a grant does not hold.
    """
    znode = servers.tree.find(grant.node)
    owner = grant.stamp.session_id
    keep("granted", znode is not None and znode.owner == owner and owner in servers.alive)
    keep("granted", znode is not None and znode.czxid == grant.czxid)
    keep("granted", all(other[-10:] >= grant.node[-10:] for other in servers.tree.names))
    keep("paused", not heard or not servers.tree.paused or servers.tree.first == grant.czxid)
    keep("tokens", grant.czxid > servers.token)


def is_unheard(grant: ev.Grant, servers: Servers, it: Candidate) -> bool:
    """Whether an operator deleted that znode, and a watch event that would tell was lost."""
    return it.missed and servers.tree.find(grant.node) is None


def check_finish(finish: ev.Finish, servers: Servers) -> None:
    """Judge the word that nothing of a campaign is left in the session that we know.

    :raises Broken: something is.
    """
    session = finish.stamp.session_id
    keep("finished", all(znode.owner != session for znode in servers.tree.nodes))


def check_rest(everybody: Iterable[tuple[State, Candidate]], servers: Servers) -> None:
    """Judge a world in which all is mended and nothing more happens.

    :raises Broken: nobody leads, somebody is stuck, or something is left.
    """
    standing = [state for state, _ in everybody if state.phase is not Phase.IDLE]
    leading = [state for state in standing if state.leads]
    waiting = [state for state in standing if state.phase is Phase.WAITING]
    own = [state.node.node for state in standing if state.node is not None]
    keep("nothing left", sorted(own) == sorted(servers.tree.names))
    keep("nothing left", not any(state.doomed for state, _ in everybody))
    keep("one leads", len(leading) == int(bool(standing)))
    keep("one leads", len(leading) + len(waiting) == len(standing))
    keep("evicted", not {*own}.intersection(servers.tree.evicted))
    for state, it in everybody:
        over = it.campaigns if state.phase is Phase.IDLE else it.cancelled
        keep("cancelled", it.finished >= over)


def check_left(everybody: Iterable[tuple[State, Candidate]], servers: Servers) -> None:
    """Judge a world at rest that everybody wanted to leave.

    :raises Broken: somebody could not, or something is left.
    """
    for state, it in everybody:
        keep("leaves", state.phase is Phase.IDLE and it.finished == it.campaigns)
        keep("nothing left", not state.doomed)
    keep("nothing left", not servers.tree.nodes)
