"""A token that came in a message: Kafka, AMQP, a job queue, a file of work."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from zkelect.errors import InvalidArgument
from zkelect.stores.http_header import Headers, read_token

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Receiver", "TransactionalStore"]

T_co = TypeVar("T_co", covariant=True)


class TransactionalStore(Protocol[T_co]):
    """A guarded store that lends transactions."""

    def transaction(self, claimant: Any, /) -> AbstractContextManager[T_co]:
        """Lend a guarded transaction of this token."""


class Receiver(Generic[T_co]):
    """Lets a consumer of messages write only what the present leader has sent.

    ::

        producer.send("invoices", value, headers=[(stores.HEADER, str(leadership.check()))])

        receiver = stores.Receiver(stores.SqliteFence("orders.db", domain="billing"))
        for message in consumer:
            with receiver.accept(message.headers) as db:
                db.execute("insert into orders values (?)", (message.value,))

    Promises: what the store does for a token: the first message with a higher one is the claim,
    one with a lower one is refused, and nothing of it is written. The token is that of the term
    in which the message was sent, whoever leads when it is read.

    Does not promise: that a message of the present leader is read once only. And what an old
    leader sent in time is refused too, if a newer one's message was read before it: put it
    aside, as you would a message that cannot be read. A refused message must be settled, or it
    comes again for ever; one that the store was busy for (StoreBusy) may come again.

    What is lost when the store loses its mark, its isolation, and what it costs: as that store
    says; reading the header costs nothing. A store without transactions (Redis, files, S3) needs
    no receiver: give :func:`read_token`'s token to its own methods; so does one of asyncio.

    :param store: the guarded store that the messages are written to.
    :raises InvalidArgument: it has no ``transaction``.
    """

    def __init__(self, store: TransactionalStore[T_co]) -> None:
        transaction = getattr(store, "transaction", None)
        if not callable(transaction):
            expected = "a store with transactions; others take read_token(headers) as it is"
            raise InvalidArgument("store", store, expected)
        self._transaction: Callable[[Any], AbstractContextManager[T_co]] = transaction

    def accept(self, headers: Headers) -> AbstractContextManager[T_co]:
        """Lend the store's guarded transaction for one message.

        :param headers: the message's headers, as its client gives them, or the token's text.
        :raises InvalidArgument: they hold no token, more than one, or a malformed one.
        :raises Refused: the table of :mod:`zkelect.stores.fence` says no, or StoreBusy.
        """
        return self._transaction(read_token(headers))
