"""pgbouncer switched along: its clients wait while the primary is changed, then go to the new one.

Needs the extra ``postgres``.
"""

from zkelect.recipes.pgbouncer.bouncer import PgBouncer
from zkelect.recipes.pgbouncer.database import Database

__all__ = ["Database", "PgBouncer"]
