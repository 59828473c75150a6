"""Pods with claims, from the queue to the binding: written, confirmed, given back, and never shared."""

import asyncio
from typing import Any

import msgspec
import pytest

from devices.builders import a_claim, a_class, a_device, a_slice
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import (
    AllocationResult,
    Consumer,
    ResourceClaim,
    ResourceClaimStatus,
)
from plimsoll.ports.resource_claims import FINALIZER, ClaimAnswer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.devices.claim_writes import TRIES
from plimsoll.testing.builders import a_node, a_pod
from scheduling.binding.devices import DeviceScene, gpus

CONFLICT = WriteResult(WriteOutcome.CONFLICT, "the object has been modified")
FENCED = WriteResult(WriteOutcome.FENCED, "not sent: this process does not lead")


def allocated(claim: ResourceClaim, device: str = "d0", *users: Pod, node: str = "gpu") -> ResourceClaim:
    """The claim with a device, reserved for these pods."""
    allocation = convert(
        AllocationResult,
        {
            "devices": {
                "results": [{"request": "r", "driver": "gpu.example.com", "pool": node, "device": device}]
            }
        },
    )
    users_ = tuple(Consumer(resource="pods", name=each.name, uid=each.uid) for each in users)
    return msgspec.structs.replace(
        claim, status=ResourceClaimStatus(allocation=allocation, reserved_for=users_)
    )


def devices_of(claim: ResourceClaim) -> list[str]:
    """The names of its devices."""
    allocation = claim.status.allocation
    return [] if allocation is None else [each.device for each in allocation.devices.results]


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound() -> None:
    """Finalizer, then one status with allocation, time and reservation, then the binding."""
    scene = DeviceScene(a_claim())
    pod = scene.wants()
    seen: list[Any] = []

    async def look(_pod: Pod, _node: str) -> None:
        seen.append(scene.claims.claims["default/mine"])

    scene.binder.before = look
    async with scene:
        await scene.later()

    assert scene.binder.bound == {"default/pod": "gpu"}
    assert scene.claims.writes == ["finalizers default/mine", "status default/mine"]
    claim = seen[0]
    assert claim.metadata.finalizers == (FINALIZER,)
    assert claim.status.reserved_for == (Consumer(resource="pods", name="pod", uid=pod.uid),)
    assert devices_of(claim) == ["d0"]
    assert claim.status.allocation.allocation_timestamp is not None
    assert scene.devices.in_flight == {}


async def test_a_pod_is_not_bound_before_the_watch_has_shown_its_claim() -> None:
    """Until then another scheduler may have written the same device before."""
    scene = DeviceScene(a_claim())
    scene.wants()
    scene.claims.holds_back = True
    async with scene:
        await scene.later()
        before = dict(scene.binder.bound), len(scene.devices.in_flight)
        scene.claims.catch_up()
        await scene.later()

    assert before == ({}, 1)
    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_two_pods_in_flight_never_share_a_device() -> None:
    """The second one waits until the first one's claim is given back, and is tried when it is."""
    scene = DeviceScene(a_claim(), a_claim("other"))
    first = scene.wants("first")
    scene.wants("second", "other")
    async with scene:
        await scene.later()
        before = dict(scene.binder.bound)
        scene.removes(first)
        claim = scene.claims.claims["default/mine"]
        scene.claims.put(msgspec.structs.replace(claim, status=ResourceClaimStatus()))
        await scene.later(15)

    assert before == {"default/first": "gpu"}
    assert scene.binder.bound == {"default/first": "gpu", "default/second": "gpu"}


def users_when_bound(scene: DeviceScene) -> list[list[str]]:
    """For whom the claim is reserved whenever a binding is sent; from the first one on the watch lags."""
    seen: list[list[str]] = []

    async def look(_pod: Pod, _node: str) -> None:
        scene.claims.holds_back = not seen
        seen.append([each.name for each in scene.claims.claims["default/mine"].status.reserved_for])

    scene.binder.before = look
    return seen


async def test_a_reservation_that_was_taken_back_is_made_again_though_the_watch_lags() -> None:
    """After a binding that failed, the watch still shows the reservation of the first attempt."""
    scene = DeviceScene(a_claim())
    users = users_when_bound(scene)
    scene.wants()
    scene.binder.answers = [CONFLICT]
    async with scene:
        await scene.later(30)
        before = list(users)
        scene.claims.catch_up()
        await scene.later(1)

    assert before == [["pod"]]
    assert scene.claims.writes[2:] == ["unreserve default/mine", "status default/mine"]
    assert users == [["pod"], ["pod"]]
    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_a_reservation_is_not_made_while_that_of_an_earlier_attempt_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or the write that takes it back would take back the new one."""
    scene = DeviceScene(a_claim())
    users, arrived, unreserve = users_when_bound(scene), asyncio.Event(), scene.claims.unreserve

    async def late(claim: ResourceClaim, pod: Pod) -> ClaimAnswer:
        await arrived.wait()
        return await unreserve(claim, pod)

    monkeypatch.setattr(scene.claims, "unreserve", late)
    scene.wants()
    scene.binder.answers = [CONFLICT]
    async with scene:
        await scene.later(30)
        before = list(users)
        arrived.set()
        scene.claims.catch_up()
        await scene.later(1)

    assert before == [["pod"]]
    assert users == [["pod"], ["pod"]]


async def test_a_lost_answer_is_asked_for() -> None:
    """The claim was written: it is neither written again nor taken for somebody else's."""
    scene = DeviceScene(a_claim())
    scene.wants()
    scene.claims.lost = 2
    async with scene:
        await scene.later()

    assert scene.binder.bound == {"default/pod": "gpu"}
    assert scene.claims.writes == ["finalizers default/mine", "status default/mine"]


async def test_a_spec_that_was_stored_with_blanks_is_said_and_not_bound() -> None:
    """The API server takes the finalizer for a change of the spec; the condition says what to do."""
    scene = DeviceScene(a_claim())
    message = 'ResourceClaim "mine" is invalid: spec: Invalid value: {}: field is immutable'
    scene.claims.answers = [WriteResult(WriteOutcome.REFUSED, message)]
    scene.wants()
    async with scene:
        await scene.later()

    said = scene.statuses.conditions["pod"].message
    assert scene.binder.bound == {}
    assert f"add finalizer to claim default/mine: {message}" in said
    assert said.endswith("write it (or its template) again without blanks")


async def test_a_conflict_is_looked_at_and_written_again() -> None:
    """Somebody has labelled the claim meanwhile."""
    scene = DeviceScene(a_claim())
    scene.wants()
    scene.claims.answers = [None, CONFLICT]
    async with scene:
        await scene.later(1)

    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_a_last_write_whose_answer_is_lost_is_seen_to_have_happened() -> None:
    """Four conflicts, then no answer to a status that the server has stored."""
    claim = a_claim()
    metadata = msgspec.structs.replace(claim.metadata, finalizers=(FINALIZER,))
    scene = DeviceScene(msgspec.structs.replace(claim, metadata=metadata))
    scene.wants()
    scene.claims.answers, scene.claims.lost = [CONFLICT] * (TRIES - 1), 1
    async with scene:
        await scene.later(1)

    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_a_claim_that_another_scheduler_allocates_meanwhile_is_left_to_it() -> None:
    """It has another device by then; the next attempt goes where that is."""
    scene = DeviceScene(a_claim(), slices=[gpus(1), gpus(1, "other")], nodes=[a_node("gpu"), a_node("other")])
    claim = scene.claims.claims["default/mine"]
    scene.wants()
    scene.claims.before = lambda: scene.claims.put(allocated(claim, node="other"))
    async with scene:
        await scene.later(20)

    condition = scene.statuses.conditions["pod"]
    assert "claim default/mine got allocated elsewhere in the meantime" in condition.message
    assert scene.claims.claims["default/mine"].status.allocation.devices.results[0].pool == "other"
    assert scene.binder.bound.keys() == {"default/pod"}


async def test_a_device_that_another_scheduler_allocates_first_is_not_used() -> None:
    """Its write came before ours: the watch shows it first, and our claim gives its device back."""
    scene = DeviceScene(a_claim(), a_claim("theirs"))
    theirs = scene.claims.claims["default/theirs"]
    scene.wants()
    scene.claims.holds_back = True
    scene.claims.before = lambda: scene.claims.put(allocated(theirs))
    async with scene:
        await scene.later()
        scene.claims.catch_up()
        await scene.later()

    assert scene.binder.bound == {}
    assert devices_of(scene.claims.claims["default/theirs"]) == ["d0"]
    assert devices_of(scene.claims.claims["default/mine"]) == []
    message = scene.statuses.conditions["pod"].message
    assert (
        "device gpu.example.com/gpu/d0 of resource claim default/mine is allocated to resource claim"
        " default/theirs as well" in message
    )


async def test_a_pod_that_goes_while_its_claim_is_written_reserves_nothing() -> None:
    """What is on its way has its end, then the reservation is taken back; the devices count until then."""
    scene = DeviceScene(a_claim())
    pod = scene.wants()
    scene.claims.holds_back = True
    async with scene:
        await scene.later()
        scene.removes(pod)
        await scene.later()
        between = scene.claims.claims["default/mine"], len(scene.devices.in_flight)
        scene.claims.catch_up()
        await scene.later()

    assert scene.binder.bound == {}
    assert between[0].status.reserved_for == ()
    assert devices_of(between[0]) == ["d0"]
    assert between[1] == 1
    assert scene.devices.in_flight == {}


async def test_a_process_that_lost_the_lead_binds_nothing_and_the_next_one_goes_on() -> None:
    """Its claim stays as it was written; a new process reads the book from the claims' status."""
    scene = DeviceScene(a_claim(), a_claim("other"))
    pod = scene.wants()
    scene.binder.answer = FENCED
    scene.claims.answers = [None, None, FENCED, FENCED, FENCED, FENCED]
    async with scene:
        await scene.later()
    written = scene.claims.claims.values()
    later = DeviceScene(*written)
    later.wants("second", "other")
    later.wants()
    async with later:
        await later.later()

    assert scene.binder.bound == {}
    assert later.binder.bound == {"default/pod": "gpu"}
    assert later.claims.writes == []
    assert later.claims.claims["default/mine"].status.reserved_for[0].uid == pod.uid


async def test_a_claim_that_is_deleted_meanwhile_binds_nothing() -> None:
    """The next attempt waits until there is a claim of that name again."""
    scene = DeviceScene(a_claim(), a_claim("again"))
    scene.wants()
    scene.wants("other", "again")
    scene.claims.before = lambda: scene.claims.remove("default/mine")
    async with scene:
        await scene.later(1)

    assert "claim default/mine got deleted in the meantime" in scene.statuses.conditions["pod"].message
    assert "default/pod" not in scene.binder.bound


async def test_a_shared_claim_is_reserved_for_each_of_its_pods() -> None:
    """The first allocates it, and the second goes to the same node."""
    scene = DeviceScene(a_claim())
    scene.wants("first")
    scene.wants("second")
    async with scene:
        await scene.later(15)

    assert scene.binder.bound == {"default/first": "gpu", "default/second": "gpu"}
    names = [each.name for each in scene.claims.claims["default/mine"].status.reserved_for]
    assert names == ["first", "second"]


def out_of_reach() -> ResourceClaim:
    """A claim that no pod uses; the node of its device is gone."""
    claim = allocated(a_claim())
    selector = {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
        ]
    }
    plain = msgspec.to_builtins(claim.status.allocation)
    allocation = convert(AllocationResult, {**plain, "nodeSelector": selector})
    return msgspec.structs.replace(claim, status=ResourceClaimStatus(allocation=allocation))


async def test_a_reservation_for_an_earlier_pod_of_the_name_is_not_the_pod_s() -> None:
    """Made again, it has another uid: it is reserved the claim itself, in the server's view and in ours."""
    earlier = a_pod("pod", uid="earlier")
    scene = DeviceScene(allocated(a_claim(), "d0", earlier))
    pod = scene.wants()
    seen: list[Any] = []

    async def look(_pod: Pod, _node: str) -> None:
        seen.extend(each.uid for each in scene.claims.claims["default/mine"].status.reserved_for)

    scene.binder.before = look
    async with scene:
        await scene.later(15)

    assert "default/pod" in scene.binder.bound
    assert pod.uid in seen


async def test_an_unused_allocation_that_keeps_a_pod_from_every_node_is_taken_back() -> None:
    """The node of its device is gone."""
    scene = DeviceScene(out_of_reach())
    scene.wants()
    async with scene:
        await scene.later(15)

    assert scene.claims.writes[0] == "status default/mine"
    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_an_allocation_that_cannot_be_taken_back_is_said_and_tried_again() -> None:
    """The server refuses the write: the condition has its words, and the pod does not wait for an event."""
    scene = DeviceScene(out_of_reach())
    scene.claims.answers = [WriteResult(WriteOutcome.REFUSED, "claims are frozen")]
    scene.wants()
    async with scene:
        await scene.later()
        refused = scene.statuses.conditions["pod"]
        writes = list(scene.claims.writes)
        for _ in range(4):
            await scene.later(5)

    assert writes == []
    assert refused.reason == "Unschedulable"
    assert "deallocating resource claim default/mine: claims are frozen" in refused.message
    assert "deallocation of ResourceClaim completed" not in refused.message
    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_a_pod_waits_until_its_deallocation_is_written() -> None:
    """It is in flight meanwhile, so that what the watch shows then is not missed."""
    scene = DeviceScene(out_of_reach())
    scene.claims.holds_back = True
    scene.wants()
    async with scene:
        await scene.later()
        early = dict(scene.binder.bound)
        scene.claims.catch_up()
        for _ in range(4):
            await scene.later(5)

    assert early == {}
    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_a_gated_pod_is_tried_when_its_claim_is_made() -> None:
    """PreEnqueue holds it back, and the claim's creation lets it go."""
    scene = DeviceScene()
    scene.wants()
    async with scene:
        await scene.later()
        gated = scene.wing.queue.depths()["gated"]
        scene.claims.put(a_claim())
        await scene.later(15)

    assert gated == 1
    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_devices_that_must_be_prepared_hold_the_binding() -> None:
    """Until the driver says that they are."""
    device = a_device("d0", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    scene = DeviceScene(a_claim(), slices=[a_slice("gpu", [device])])
    scene.wants()
    async with scene:
        await scene.later()
        before = dict(scene.binder.bound)
        claim = scene.claims.claims["default/mine"]
        said = {
            "driver": "gpu.example.com",
            "pool": "gpu",
            "device": "d0",
            "conditions": [{"type": "ready", "status": "True"}],
        }
        plain = {**msgspec.to_builtins(claim.status), "devices": [said]}
        status = convert(ResourceClaimStatus, plain)
        scene.claims.put(msgspec.structs.replace(claim, status=status))
        await scene.later()

    assert before == {}
    assert scene.binder.bound == {"default/pod": "gpu"}


async def test_devices_that_are_not_prepared_in_time_are_given_back() -> None:
    """The pod is tried again, and PostFilter takes the allocation back."""
    device = a_device("d0", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    scene = DeviceScene(a_claim(), slices=[a_slice("gpu", [device])])
    scene.wants()
    async with scene:
        await scene.later(601)
        message = scene.statuses.conditions["pod"].message
        await scene.later(30)

    assert "device binding timeout: claim=default/mine" in message
    assert scene.claims.writes[2:4] == ["unreserve default/mine", "status default/mine"]


async def test_extended_resources_get_a_claim_of_their_own() -> None:
    """Created, allocated, and named in the pod's status, before the binding."""
    gpu = a_class("gpu", extendedResourceName="example.com/gpu")
    scene = DeviceScene(classes=[gpu])
    wanted = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    scene.wants(claim="", containers=[{"name": "c", "resources": wanted}])
    told: list[str] = []
    scene.observer.claim_created = told.append  # type: ignore[method-assign] # notes what it receives
    async with scene:
        await scene.later()

    assert scene.binder.bound == {"default/pod": "gpu"}
    assert told == ["success"]
    made = "default/pod-extended-resources-x"
    assert scene.claims.writes == [f"create {made}", f"finalizers {made}", f"status {made}"]
    assert scene.claims.mappings == [
        ("default/pod", "pod-extended-resources-x", (("c", "example.com/gpu", "container-0-request-0"),))
    ]
    assert scene.devices.in_flight == {}


async def test_the_claim_of_extended_resources_goes_when_the_pod_is_not_bound() -> None:
    """No other pod could use it."""
    gpu = a_class("gpu", extendedResourceName="example.com/gpu")
    scene = DeviceScene(classes=[gpu])
    wanted = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    scene.wants(claim="", containers=[{"name": "c", "resources": wanted}])
    scene.binder.answers = [WriteResult(WriteOutcome.REFUSED, "no")]
    async with scene:
        await scene.later()
        gone = dict(scene.claims.claims), dict(scene.devices.in_flight)
        await scene.later(15)

    assert gone == ({}, {})
    assert scene.binder.bound == {"default/pod": "gpu"}
