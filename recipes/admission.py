"""Whether a server belongs to a cluster: looked at before anything is done with it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from zkelect.recipes.member import Heartbeat, Member
from zkelect.recipes.page import Page
from zkelect.recipes.resource import Unfit

__all__ = ["admit"]


def admit(
    path: str, member: Member, system: str, page: Page | None, beats: Iterable[Heartbeat]
) -> None:
    """Refuse a stranger, and the second agent of a server.

    A server of another cluster would be demoted, for the page does not name it. Two agents of one
    server would each undo what the other does.

    :param system: that the server is of; empty: not known. :param beats: of who is there.
    :raises Unfit: it does not belong here; the text says what to change.
    """
    if page is not None and page.system and system and system != page.system:
        raise Unfit(
            f"{path} is the path of the cluster {page.system}, and {member.name} is of {system}:"
            " give it another path, or make the server anew from that cluster"
        )
    for other in (beat.member for beat in beats if beat.name != member.name):
        if other.address == member.address != "":
            raise Unfit(
                f"{other.name} is there, and has the address {member.address}, too: a server has"
                " one agent; end the other one, or correct one of the two addresses"
            )
