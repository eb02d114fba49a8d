"""The contract, over HTTP: leaders send, and the service keeps its mark in SQLite.

The token is all that crosses the wire. So there the first request is the claim, the service
learns neither the election nor the name of its leader, and three cases come out otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stores.benches import entries, marked
from stores.contract import *  # noqa: F403  # collected here, with this module's bench
from stores.http_bench import http_bench

from zkelect.errors import Fenced, LineageMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stores.benches import Bench
    from stores.contract import MakeBearer


@pytest.fixture(params=["httpx", "requests", "asgi"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with http_bench(tmp_path / "marks.db", request.param) as made:
        yield made


def test_h51_without_a_claim_nothing_is_written(  # type: ignore[no-redef]  # that is the point
    bench: Bench, bearer: MakeBearer
) -> None:
    """The first request of a term is its claim, whatever it does; a read claims, too."""
    fence, old, new = bench.fence(), bearer(5), bearer(6)
    bench.write(fence, old, "claims by writing")
    fence.claim(new)
    assert marked(fence) == new.token
    with pytest.raises(Fenced):
        bench.write(fence, old, "after the read of the new one")
    assert entries(bench) == ["claims by writing"]


def test_a_refusal_names_who_holds_the_mark(  # type: ignore[no-redef]  # that is the point
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, old, new = bench.fence(), bearer(5), bearer(6, name="host-b")
    fence.claim(new)
    with pytest.raises(Fenced, match=r"http://.*\(sqlite:.*\) \[d\]") as caught:
        bench.write(fence, old, "too late")
    assert (caught.value.holder, caught.value.mark) == ("", new.token)


def test_h63_a_domain_of_another_election_is_refused(  # type: ignore[no-redef]  # that is the point
    bench: Bench, bearer: MakeBearer
) -> None:
    fence, owner = bench.fence(), bearer(5, path="/elections/a")
    fence.claim(owner)
    with pytest.raises(LineageMismatch):
        bench.fence().claim(bearer(9, path="/elections/b", lineage="f" * 16))
    bench.write(fence, owner, "undisturbed")
    assert entries(bench) == ["undisturbed"]
