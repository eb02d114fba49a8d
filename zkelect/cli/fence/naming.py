"""How a store is named on the command line, which everybody on the host can read in ``ps``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zkelect.cli.fence.addresses import is_secret, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_url"]


def find_url(given: str, stores: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the URL of a store: given as it is, or by a name.

    :param stores: URLs by the names that the configuration file has for them.
    :param environment: of this process: a variable may hold the URL.
    :raises click.UsageError: it has a password, or there is no such name.
    """
    if ":" in given:
        if is_secret(given):
            raise click.UsageError(
                f"{shown(given)}: a password on the command line is for everybody to read. Write "
                "the URL into the configuration file, under [stores], or into an environment "
                "variable, and give its name."
            )
        return given
    url = stores.get(given) or environment.get(given)
    if url is None or ":" not in url:
        names = ", ".join(sorted(stores)) or "none"
        raise click.UsageError(
            f"{given!r} is no URL, no environment variable that holds one, and no name under "
            f"[stores] of the configuration file ({names})."
        )
    return url
