"""The first write of a new primary: the token in the fence, and its promotion, in one transaction.

So no server has one without the other: who has the mark is known to be on the new branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pymysql
import sqlalchemy

from zkelect import stores
from zkelect.recipes.mariadb import gate, history
from zkelect.recipes.mariadb.asking import account, join_local

if TYPE_CHECKING:
    from zkelect import Leadership
    from zkelect.recipes.mariadb.history import Promotion
    from zkelect.recipes.mariadb.place import Place

__all__ = ["claim"]

_ANSWER: Final = 5.0


def claim(
    place: Place, domain: str, leadership: Leadership, promotion: Promotion, deadline: float
) -> None:
    """Write the leadership's token into the fence; nothing was written on this branch before.

    A new branch has nobody's mark to go on with, hence ``initialize``; the engine has chosen the
    server, and compared positions before.
    """

    def entering() -> _Entering:
        connection = _Entering(**account(place, _ANSWER))
        join_local(connection, place, _ANSWER)
        connection.enter_with_commit(place.database, promotion)
        return connection

    engine = sqlalchemy.create_engine(
        "mysql+pymysql://", creator=entering, poolclass=sqlalchemy.NullPool
    )
    fence = stores.SqlFence(engine, domain=domain, schema=place.database)
    with gate.ajar(place, leadership.check, deadline):
        fence.claim(leadership, initialize=True)


class _Entering(pymysql.Connection):
    """A connection whose transactions enter the promotion before they are committed."""

    _promotion: tuple[str, Promotion] | None = None

    def enter_with_commit(self, database: str, promotion: Promotion) -> None:
        self._promotion = database, promotion

    def commit(self) -> None:
        if self._promotion is not None:
            with self.cursor() as cursor:
                history.enter(cursor, *self._promotion)
        super().commit()
