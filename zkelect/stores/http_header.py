"""The token on the wire: one header, the same for HTTP requests and for messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from zkelect.errors import InvalidArgument
from zkelect.token import Token

__all__ = ["HEADER", "Headers", "read_token"]

HEADER: Final = "Fencing-Token"
"""The name of the header that carries ``str(token)``; compared without regard to case."""

Headers: TypeAlias = (
    Mapping[str, object] | Iterable[tuple[str | bytes, object]] | str | bytes | None
)
"""Headers as clients of HTTP, Kafka and AMQP give them, or the bare text of a token."""

_FORM: Final = f"one {HEADER} header, with the text of a token"


def read_token(headers: Headers) -> Token:
    """Return the token that came with a request or a message.

    It is the sender's token at the time of sending. Nobody is asked for a present one, so that
    what an old term has sent stays of that term, whoever leads now.

    :param headers: a mapping or pairs of names and values, text or bytes, or the token's own text.
    :raises InvalidArgument: no token, more than one, or none of that form; nothing is guessed.
        Its ``value`` is None if there is no such header.
    """
    values = [headers] if isinstance(headers, str | bytes) else _values(headers)
    if not values:
        raise InvalidArgument(HEADER, None, _FORM)
    if len(values) > 1:
        raise InvalidArgument(HEADER, values, _FORM)
    try:
        return Token.parse(_text(values[0]))
    except ValueError as error:
        raise InvalidArgument(HEADER, values[0], _FORM) from error


def _values(
    headers: Mapping[str, object] | Iterable[tuple[str | bytes, object]] | None,
) -> list[object]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [value for name, value in pairs if _text(name).lower() == HEADER.lower()]


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
