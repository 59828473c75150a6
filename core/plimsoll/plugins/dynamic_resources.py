"""DynamicResources: place pods on nodes where their resource claims can be allocated.

Formula: none for pods without claims: every node is feasible and scores 0. Otherwise, per node, the first
solution of a search over the devices available to the node, in the order of claims, requests and devices
(:mod:`plimsoll.devices.allocator`); a node without a solution is not feasible. Score: for each list of
alternatives 8 for the first, 7 for the second, and so on, normalised to 100 for the highest sum.

Reserve books the devices in memory. PreBind writes the allocation and the reservation for the pod, and waits
until the devices are prepared, at most ``bindingTimeout``. If no node is feasible, PostFilter deallocates one
unused claim that keeps the pod from nodes.

Units: points; seconds.
Edges: a node on which some claim cannot be allocated is refused with that reason alone. Refusals are final
for the node: removing pods frees no devices before their claims are released.
Source: kube-scheduler v1.36, ``dynamicresources/dynamicresources.go``, with its default feature gates.
Differs: among several claims that could be deallocated, the first is, not a random one.
"""

import re
from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct
from pydantic import Field, ValidationInfo, field_validator

from plimsoll import framework as fwk
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import DEALLOCATED, DELETED, Booking, DevicesPort
from plimsoll.devices.fork_bookings import DecidedBookings
from plimsoll.devices.node_answers import ALL_OF_INVALID, ALL_OF_UPDATED, INVALID, NOT_FREE
from plimsoll.devices.pod_claims import ClaimProblem, claims_of
from plimsoll.devices.pod_devices import (
    UNAVAILABLE,
    GoneDeviceError,
    PodDevices,
    claims_wanted,
    pod_devices,
    resources_of,
)
from plimsoll.devices.requests import MissingClassError, wanted_claim
from plimsoll.devices.search_limits import STEPS_A_SECOND
from plimsoll.framework.columns import RowArray

NOT_SERVED = "resource claims are not served by this scheduler; remove spec.resourceClaims or use another"
IN_FLIGHT = "is in the process of being allocated"
STILL_USED = "is still allocated to pods that are leaving"
#: Plugins of upstream that may reject a pod before this one.
EARLIER = frozenset({"NodeAffinity", "VolumeRestrictions", "VolumeBinding", "VolumeZone", "InterPodAffinity"})
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
NOT_FOUND = "claim allocation not found for node"
STILL_NOT_SCHEDULABLE = "still not schedulable"

#: Number of pod shapes that are known to need no preparation.
MOST_PREPARED = 256

#: Steps of a search without a limit.
ANY_STEPS = 1 << 60

#: The code of every node while a claim of an earlier attempt exists.
LEFT_OVER = 17

REASONS = {
    NOT_FREE: "cannot allocate all claims",
    INVALID: "invalid resource pools were encountered",
    ALL_OF_UPDATED: "all devices are requested, but a resource pool is currently being updated",
    ALL_OF_INVALID: "all devices are requested, but a resource pool is currently invalid",
    UNAVAILABLE: "resourceclaim not available on the node",
    LEFT_OVER: "cannot schedule extended resource claim",
}


#: Devices of a pod that requests none.
NO_DEVICES = PodDevices(fwk.Pod())


class DynamicResourcesArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    filter_timeout: str = Field(
        default="10s",
        description="How long the search for devices may take a node; 0 for as long as it takes.",
    )
    binding_timeout: str = Field(
        default="600s", description="How long binding waits for devices; at least a second."
    )

    @field_validator("filter_timeout", "binding_timeout")
    @classmethod
    def _is_long_enough(cls, text: str, info: ValidationInfo) -> str:
        seconds = _seconds(text)
        if info.field_name == "binding_timeout" and seconds < 1:
            raise ValueError("must be at least 1 second")
        if seconds < 0:
            raise ValueError("must be zero or positive")
        return text

    @property
    def most_steps(self) -> int:
        """Maximum number of steps of the search on a node."""
        seconds = _seconds(self.filter_timeout)
        return int(seconds * STEPS_A_SECOND) if seconds else ANY_STEPS

    @property
    def binding_timeout_s(self) -> float:
        """The binding timeout in seconds."""
        return _seconds(self.binding_timeout)


class _Booked(Struct, frozen=True):
    """Devices booked by Reserve."""

    bookings: tuple[Booking, ...]


class DynamicResources(
    fwk.PreEnqueuePlugin,
    fwk.PreFilterPlugin,
    fwk.FilterPlugin,
    fwk.PostFilterPlugin,
    fwk.NormalizingPlugin,
    fwk.ReservePlugin,
    fwk.PreBindPlugin,
    fwk.EnqueueExtensions,
):
    """Finds devices for a pod's claims, books them, and allocates them before the pod is bound."""

    name: ClassVar = "DynamicResources"
    args_model: ClassVar = DynamicResourcesArgs
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, is_parallel=True)
    names_no_node: ClassVar = True

    def __init__(self, args: DynamicResourcesArgs) -> None:
        self._most_steps = args.most_steps
        self._binding_timeout_s = args.binding_timeout_s
        self._prepared: set[Hashable] = set()  #: shapes of pods for whose claims all nodes were searched
        self._prepared_mark: Hashable = None

    def pre_enqueue(self, pod: fwk.PodInfo) -> fwk.Status:
        """Success: without the cluster, nothing is known about the claims."""
        return fwk.SUCCESS

    def pre_enqueue_on(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Gate a pod until its claims exist and belong to it."""
        book = snapshot.objects.known_ledger(DeviceBook)
        if book is None or not book.is_served or not pod.pod.spec.resource_claims:
            return fwk.SUCCESS
        try:
            claims = claims_of(pod.pod, book.claims, snapshot.objects.pod_groups)
        except ClaimProblem as problem:
            return fwk.unresolvable(str(problem))
        hold = book.holds.get(pod.uid)
        waiting = next((each.key for each in claims if hold is not None and hold.waits_for(each)), "")
        return fwk.unresolvable(f"resource claim {waiting} {STILL_USED}") if waiting else fwk.SUCCESS

    def result_version(self, template: fwk.PodTemplate, snapshot: fwk.Snapshot) -> fwk.ResultVersion:
        """A version that changes with every change of devices, for pods that request some."""
        book = snapshot.objects.known_ledger(DeviceBook)
        if book is None:
            return fwk.INDIFFERENT
        if not template.sample.spec.resource_claims and not resources_of(template, book):
            return fwk.INDIFFERENT
        # A claim of an earlier attempt, or held devices, concern single pods of the template.
        is_own = book.has_left_over or book.holds
        return fwk.ResultVersion((book.version, object()) if is_own else book.version)

    def signature(self, template: fwk.PodTemplate) -> Hashable:
        """A signature shared by all pods that request no devices."""
        # Devices can serve only names with a domain.
        asks = template.sample.spec.resource_claims or any("/" in name for name in template.requests)
        return None if asks else ()

    def prepare(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> bool:
        """Search on some of the nodes, since the first pod with claims of a new shape would search on all."""
        book = snapshot.objects.known_ledger(DeviceBook)
        if book is None or not book.is_served:
            return False
        resources = resources_of(pod.template, book)
        if not pod.pod.spec.resource_claims and not resources:
            return False
        mark = (id(book), book.shape_version, len(snapshot))
        if mark != self._prepared_mark:
            self._prepared_mark = mark
            self._prepared.clear()
        # Claims with the same name or template usually have the same shape; otherwise the attempt searches.
        written = tuple(
            (each.resource_claim_name, each.resource_claim_template_name)
            for each in pod.pod.spec.resource_claims
        )
        kind = (pod.namespace, written, resources)
        if kind in self._prepared:
            return False
        try:
            devices = pod_devices(pod, book, snapshot.objects.pod_groups)
            if devices is not None and devices.search_part(snapshot, self._most_steps):
                return True
        except MissingClassError:
            return False
        if len(self._prepared) >= MOST_PREPARED:
            self._prepared.clear()
        self._prepared.add(kind)
        return False

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Look up the pod's claims, and search the nodes for devices of those without an allocation."""
        book = snapshot.objects.known_ledger(DeviceBook)
        state.write(NO_DEVICES)
        resources = () if book is None else resources_of(pod.template, book)
        if not pod.pod.spec.resource_claims and not resources:
            return fwk.SKIP
        if book is None or not book.is_served:
            return fwk.unresolvable(
                book.why_not_served if book and book.why_not_served else NOT_SERVED, no_node_helps=True
            )
        try:
            claims = claims_wanted(pod, book, snapshot.objects.pod_groups)
            hold = book.holds.get(pod.uid)
            for claim in claims:
                if hold is not None and hold.waits_for(claim):
                    return fwk.unresolvable(f"resource claim {claim.key} {STILL_USED}", no_node_helps=True)
                if claim.uid in book.in_flight:
                    return fwk.unresolvable(f"resource claim {claim.key} {IN_FLIGHT}", no_node_helps=True)
                if not claim.is_allocated:
                    state.refer_to(*wanted_claim(claim, book.classes.get).classes)
        except ClaimProblem as problem:
            return fwk.unresolvable(str(problem), no_node_helps=True)
        except MissingClassError as problem:
            if problem.is_unnamed:
                raise
            return fwk.unresolvable(str(problem), no_node_helps=True)
        devices = PodDevices(pod.pod, claims, resources, book.left_over(pod.pod) if resources else None)
        state.write(devices)
        state.refer_to(*claims, *filter(None, map(book.class_of_resource, resources)))
        return fwk.SKIP if devices.is_empty else fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The code of each node's refusal, shape (N,)."""
        devices = state.find(PodDevices)
        if devices is None or devices.is_empty:
            return fwk.all_feasible(snapshot)
        if devices.left_over is not None and devices.left_over.spec.devices.requests:
            return fwk.all_feasible(snapshot) + LEFT_OVER
        return snapshot.cut(devices.codes(snapshot.whole, self._most_steps, self._binding_timeout_s))

    def failure(self, state: fwk.CycleState, rows: RowArray) -> str:
        """Why the search failed on one of these nodes."""
        devices = state.find(PodDevices)
        return "" if devices is None else devices.failure(rows)

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The refusal in upstream's words."""
        return fwk.unresolvable(REASONS[code])

    def post_filter(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot, rejections: fwk.Rejections
    ) -> fwk.Nomination:
        """Deallocate an unused claim that keeps the pod from nodes; leave the rest to preemption."""
        if rejections.absent.plugin == self.name:
            book = snapshot.objects.known_ledger(DeviceBook)
            is_served = book is not None and book.is_served
            return fwk.Nomination(
                fwk.unschedulable(NOTHING_TO_DEALLOCATE if is_served else STILL_NOT_SCHEDULABLE)
            )
        devices = state.find(PodDevices)
        if devices is None:
            # Upstream's word after every rejection that precedes its own PreFilter; it explains nothing.
            is_ours = rejections.absent.no_node_helps and rejections.absent.plugin not in EARLIER
            return fwk.Nomination(fwk.error() if is_ours else fwk.error("not found"))
        if devices.is_empty:
            return fwk.Nomination(fwk.unschedulable(NOTHING_TO_DEALLOCATE))
        # Other plugins' refusals come first, and another claim would not change them.
        unavailable = fwk.unresolvable(REASONS[UNAVAILABLE]).by(self.name)
        if unused := devices.unused(
            [row for row, status in rejections.statuses.items() if status == unavailable], snapshot
        ):
            return fwk.Nomination(fwk.unschedulable(DEALLOCATED), deallocates=unused[0])
        if devices.left_over is not None:
            return fwk.Nomination(fwk.unschedulable(DELETED), deletes=devices.left_over)
        return fwk.Nomination(fwk.unschedulable(STILL_NOT_SCHEDULABLE))

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Raw points, shape (N,)."""
        devices = state.find(PodDevices)
        if devices is None or devices.is_empty:
            return fwk.all_feasible(snapshot)
        return snapshot.cut(devices.points(snapshot.whole))

    def normalize(self, state: fwk.CycleState, pod: fwk.PodInfo, scores: fwk.IntArray) -> fwk.IntArray:
        """Scale the highest score to 100, shape (F,)."""
        most = int(scores.max()) if len(scores) else 0
        return scores * fwk.MAX_SCORE // most if most else scores

    def reserve(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Book the devices, so that they are not allocated to another pod."""
        devices, port = state.find(PodDevices), state.find(DevicesPort)
        if devices is None or devices.is_empty:
            return fwk.SUCCESS
        row = None if port is None else port.snapshot.row_of(node)
        if port is None or row is None:
            return fwk.error(NOT_FOUND)
        decided = state.find(DecidedBookings)
        share_id = port.binder.share_id
        try:
            bookings = (
                devices.bookings(row, port.snapshot.node(row), share_id)
                if decided is None
                else decided.named(share_id)
            )
        except GoneDeviceError as gone:
            return fwk.error(str(gone))
        if bookings:
            if problem := port.binder.assume(bookings):
                return fwk.error(problem)
            state.write(_Booked(bookings))
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> None:
        """Release the devices."""
        booked = state.find(_Booked)
        if booked is not None:
            state.read(DevicesPort).binder.forget(pod, booked.bookings)

    def pre_bind_preflight(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Success if anything was booked, which is then written."""
        return fwk.SKIP if state.find(_Booked) is None else fwk.SUCCESS

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Write the allocations and reservations, and wait for the devices."""
        binder = state.read(DevicesPort).binder
        return await binder.bind(pod, node, state.read(_Booked).bookings, self._binding_timeout_s)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Changes of nodes, claims, classes and slices."""
        either = fwk.ActionType.ADD | fwk.ActionType.UPDATE
        node = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_LABEL | fwk.ActionType.UPDATE_NODE_ALLOCATABLE
        generated = fwk.ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, node),
            fwk.EventWithHint(fwk.EventResource.RESOURCE_CLAIM, either, _after_claim),
            fwk.EventWithHint(fwk.EventResource.UNSCHEDULABLE_POD, generated, _after_pod),
            fwk.EventWithHint(fwk.EventResource.DEVICE_CLASS, either),
            fwk.EventWithHint(fwk.EventResource.RESOURCE_SLICE, either),
        )


def _after_claim(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """Devices became free, or a claim of the pod was created or changed its status."""
    old, new = change.old, change.new
    if old is not None and old.is_allocated and not new.is_allocated:
        return fwk.QueueingHint.QUEUE
    names = {each.resource_claim_name for each in pod.pod.spec.resource_claims}
    names |= {each.resource_claim_name for each in pod.pod.status.resource_claim_statuses}
    is_own = new.namespace == pod.namespace and new.name in names
    return fwk.QueueingHint.of(is_own and (old is None or old.status != new.status))


def _after_pod(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The update is of this pod, whose claims were created."""
    return fwk.QueueingHint.of(change.new.uid == pod.uid)


_PART = re.compile(r"([0-9]*\.?[0-9]+|[0-9]+\.)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(text: str) -> float:
    """Convert a Go duration to seconds.

    Raises:
        ValueError: The text is not a duration.
    """
    unsigned = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if unsigned != "0" and not re.fullmatch(f"(?:{_PART.pattern})+", unsigned):
        raise ValueError("must be a duration such as 10s, 500ms or 1h30m")
    total = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(unsigned))
    return -total if text.startswith("-") else total
