"""Claims that waited for their pod: booked, written, awaited, or given back."""

import asyncio
from asyncio import Task
from typing import Any

import pytest

from plimsoll.cluster.cache import Cache
from plimsoll.model.kinds.volume_claims import SELECTED_NODE
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.binding.volume_claims import ClaimBinder
from plimsoll.testing.builders import a_cluster, a_node
from plimsoll.testing.fakes import FakeClock, FakeVolumes, settled
from plugins.stored import a_claim, a_class, a_volume

CHOICES = {"default/found": "disk", "default/made": ""}


class Stage:
    """A cluster with a claim for which there is a volume, and one that is provisioned."""

    def __init__(self) -> None:
        self.cluster, self.clock, self.writer = a_cluster([a_node("n0")]), FakeClock(), FakeVolumes()
        self.cache = Cache(self.cluster)
        a_class(self.cluster)
        a_volume(self.cluster, "disk")
        a_claim(self.cluster, "found")
        a_claim(self.cluster, "made")
        self.objects = self.cluster.objects
        self.binder = ClaimBinder(self.cache, self.writer, self.clock)

    def bound(self, timeout_s: float = 600.0) -> Task[Any]:
        """A task that ends when the claims are bound, or are not."""
        return asyncio.ensure_future(self.binder.bind(CHOICES, "n0", timeout_s))

    def finish(self, *names: str) -> None:
        """The volume controller binds these claims."""
        for name in names:
            a_claim(self.cluster, name, volume="disk")
        self.cache.volumes_changed.notify()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_bookings_are_seen_by_the_next_decision(stage: Stage) -> None:
    """The volume refers to the claim, the claim names the node, and kept answers are renewed."""
    before = stage.objects.version

    stage.binder.assume(CHOICES, "n0")

    assert stage.objects.volumes["disk"].spec.claim_ref.name == "found"
    assert stage.objects.claims["default/made"].metadata.annotations == {SELECTED_NODE: "n0"}
    assert stage.objects.version > before


def test_what_is_forgotten_is_as_it_was(stage: Stage) -> None:
    """And forgetting twice, or what was never booked, does nothing."""
    volumes, claims = dict(stage.objects.volumes), dict(stage.objects.claims)
    stage.binder.assume(CHOICES, "n0")

    stage.binder.forget(CHOICES)
    stage.binder.forget({**CHOICES, "default/other": ""})

    assert (stage.objects.volumes, stage.objects.claims) == (volumes, claims)


def test_what_the_watch_brought_since_stays(stage: Stage) -> None:
    """It is newer than what is known here."""
    stage.binder.assume(CHOICES, "n0")
    a_volume(stage.cluster, "disk", size="99Gi")

    stage.binder.forget(CHOICES)

    assert stage.objects.volumes["disk"].spec.capacity == {"storage": "99Gi"}


async def test_binding_writes_and_waits_for_all(stage: Stage) -> None:
    """Without waiting for time to pass; one claim that is bound is not enough."""
    stage.binder.assume(CHOICES, "n0")
    task = stage.bound()

    await stage.clock.advance(3)
    assert (stage.writer.selected, stage.writer.reserved) == ({"made": "n0"}, {"disk": "found"})
    stage.finish("found")
    await settled()
    assert not task.done()
    stage.finish("made")
    await settled()

    assert task.result().is_success


async def test_waiting_has_an_end(stage: Stage) -> None:
    """The claims that are late are named."""
    stage.binder.assume(CHOICES, "n0")
    task = stage.bound(timeout_s=5)
    stage.finish("found")

    await stage.clock.advance(6)

    assert (await task).message == "binding volumes: timed out waiting for default/made"


async def test_a_provisioner_that_gives_up_ends_the_wait(stage: Stage) -> None:
    """It takes the selected node away; the pod is scheduled again."""
    stage.binder.assume(CHOICES, "n0")
    task = stage.bound()
    a_claim(stage.cluster, "made")

    await stage.clock.advance(1)

    said = 'binding volumes: provisioning failed for persistentvolumeclaim "default/made"'
    assert (await task).message == said


async def test_a_claim_that_went_elsewhere_ends_the_wait(stage: Stage) -> None:
    """Another pod that shares it was faster: this one is placed again, where the claim is."""
    stage.binder.assume(CHOICES, "n0")
    task = stage.bound()
    a_claim(stage.cluster, "made", annotations={SELECTED_NODE: "n9"})

    await stage.clock.advance(1)

    said = 'persistentvolumeclaim "default/made" is provisioned for node "n9" by now'
    assert (await task).message == f"binding volumes: {said}"


async def test_a_volume_that_the_node_does_not_reach_ends_the_wait(stage: Stage) -> None:
    """The provisioner, or the volume controller, chose one of another zone."""
    stage.binder.assume(CHOICES, "n0")
    task = stage.bound()
    a_volume(stage.cluster, "far", zones=["z9"])  # type: ignore[arg-type] # a fake has only what is used
    stage.finish("found")
    a_claim(stage.cluster, "made", volume="far")

    await stage.clock.advance(1)

    said = 'persistentvolume "far" of "default/made" cannot be reached from node "n0"'
    assert (await task).message == f"binding volumes: {said}"


async def test_a_claim_that_is_deleted_meanwhile_ends_the_wait(stage: Stage) -> None:
    """It stays until the pod is gone, which will never be bound to it."""
    stage.binder.assume(CHOICES, "n0")
    task = stage.bound()
    a_claim(stage.cluster, "made", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    await stage.clock.advance(1)

    said = 'persistentvolumeclaim "default/made" is being deleted'
    assert (await task).message == f"binding volumes: {said}"


@pytest.mark.parametrize(
    ("shelf", "key", "said"),
    [
        pytest.param("claims", "default/made", 'persistentvolumeclaim "default/made" not found', id="claim"),
        pytest.param("volumes", "disk", 'persistentvolume "disk" not found', id="volume"),
    ],
)
async def test_what_has_gone_cannot_be_bound(stage: Stage, shelf: str, key: str, said: str) -> None:
    """The sentence names it."""
    del getattr(stage.objects, shelf)[key]

    assert (await stage.bound()).message == f"binding volumes: {said}"


async def test_a_refused_write_has_the_servers_words(stage: Stage) -> None:
    """Nothing is awaited then."""
    stage.writer.answer = WriteResult(WriteOutcome.REFUSED, "forbidden")

    assert (await stage.bound()).message == "binding volumes: forbidden"
