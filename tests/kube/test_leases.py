"""The lease as an API server keeps it: written, read back, refused, and taken over when it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from plimsoll.kube.leases import IN_WORK, LeaseStore
from plimsoll.kube.session.session import MERGE_PATCH, connected
from plimsoll.leadership.work_under_way import WorkUnderWay
from plimsoll.ports.leases import Lease
from plimsoll.ports.writes import WriteOutcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from plimsoll.kube.session.session import Session

pytestmark = pytest.mark.e2e

PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MINE = Lease("me", 15, acquired=1_700_000_000.123456, renewed=1_700_000_010.5, transitions=2)


@pytest.fixture
async def session(kubeconfig: Path) -> AsyncIterator[Session]:
    """A connection to the cluster of this session."""
    async with connected(kubeconfig) as one:
        yield one


@pytest.fixture
async def store(session: Session) -> AsyncIterator[LeaseStore]:
    """A lease that does not exist yet, and is gone afterwards."""
    yield LeaseStore(session, "default", "election-test", 10)
    answer, lease = await LeaseStore(session, "default", "election-test", 10).read()
    if answer.is_done and lease is not None:
        await session.request("DELETE", f"{PATH}/election-test")


async def test_no_lease_is_an_answer(store: LeaseStore) -> None:
    """Not a failure: it is to be created."""
    answer, lease = await store.read()

    assert answer.is_done
    assert lease is None


async def test_a_lease_of_its_name_in_another_namespace_is_not_read(
    session: Session, store: LeaseStore
) -> None:
    """Users may create one in theirs: it delays no election."""
    elsewhere = LeaseStore(session, "kube-system", "election-test", 10)
    (await elsewhere.write(MINE))
    try:
        answer, lease = await store.read()
    finally:
        await session.request("DELETE", PATH.replace("default", "kube-system") + "/election-test")

    assert (answer.is_done, lease) == (True, None)


async def test_a_lease_is_read_as_it_was_written(store: LeaseStore) -> None:
    """To the microsecond, with the version that the server gave it."""
    answer, stored = await store.write(MINE)
    assert answer.is_done
    assert stored is not None
    assert stored.version

    _, found = await store.read()

    assert found == stored
    assert replace(stored, version="", metadata={}) == MINE


async def test_a_time_without_microseconds_is_written(store: LeaseStore) -> None:
    """The server takes no MicroTime without a fraction, which the client leaves out where it is 0."""
    answer, stored = await store.write(replace(MINE, acquired=1_700_000_000.0, renewed=1_700_000_010.0))

    assert answer.is_done, answer.message
    assert stored is not None
    assert (stored.acquired, stored.renewed) == pytest.approx((1_700_000_000, 1_700_000_010), abs=1e-5)


async def test_only_who_names_the_latest_version_replaces_it(store: LeaseStore) -> None:
    """The second write returns a conflict, and so does a second creation."""
    _, first = await store.write(MINE)
    assert first is not None
    assert (await store.write(MINE))[0].verdict is WriteOutcome.CONFLICT
    answer, second = await store.write(replace(first, holder="you"))
    assert answer.is_done
    assert second is not None

    answer, _ = await store.write(replace(first, holder="me again"))

    assert answer.verdict is WriteOutcome.CONFLICT
    assert (await store.read())[1] == second


async def test_a_lease_that_is_left_has_no_holder(store: LeaseStore) -> None:
    """As client-go leaves it, so that another implementation may take it."""
    _, stored = await store.write(MINE)
    assert stored is not None
    answer, left = await store.write(replace(stored, holder="", duration_s=1))

    assert answer.is_done
    assert left is not None
    assert (left.holder, left.duration_s, left.transitions) == ("", 1, 2)


async def test_what_others_wrote_on_it_is_kept(store: LeaseStore, session: Session) -> None:
    """Labels and annotations survive a renewal."""
    await store.write(MINE)
    label = {"metadata": {"labels": {"team": "a"}}}
    await session.request("PATCH", f"{PATH}/election-test", label, content_type=MERGE_PATCH)
    _, found = await store.read()
    assert found is not None

    await store.write(replace(found, renewed=found.renewed + 2))

    kept = await session.object("GET", f"{PATH}/election-test")
    assert kept["metadata"]["labels"] == {"team": "a"}


async def test_a_namespace_that_is_missing_is_named(session: Session) -> None:
    """For the log: the operator goes on trying."""
    answer, stored = await LeaseStore(session, "nowhere", "election-test", 10).write(MINE)

    assert stored is None
    assert answer.verdict is WriteOutcome.GONE
    assert 'namespaces "nowhere" not found' in answer.message


async def test_the_lease_remembers_the_pod_whose_attempt_is_under_way(
    session: Session, store: LeaseStore
) -> None:
    """The next candidate reads it, its own claim and a release remove it, and other annotations stay."""
    mine = LeaseStore(session, "default", "election-test", 10, WorkUnderWay(lambda: (7, "uid-1")))
    _, stored = await mine.write(replace(MINE, metadata={"annotations": {"other": "stays"}}))
    assert stored is not None
    _, stored = await mine.write(stored)
    assert stored is not None

    work = WorkUnderWay()
    theirs = LeaseStore(session, "default", "election-test", 10, work)
    _, seen = await theirs.read()
    assert seen is not None
    assert work.left == {"uid-1": 1}
    assert seen.metadata["annotations"] == {"other": "stays", IN_WORK: "uid-1/1"}

    _, claimed = await theirs.write(replace(seen, holder="they"))
    assert claimed is not None
    assert claimed.metadata["annotations"] == {"other": "stays"}
    _, released = await mine.write(replace(claimed, holder=""))
    assert released is not None
    assert released.metadata["annotations"] == {"other": "stays"}
