"""PodDevices: the claims of a pod in one attempt, with their devices on each node.

Nodes are searched in groups: on some, devices serve an extended resource that other nodes have themselves.

Axis letter: N nodes. Source: kube-scheduler v1.36, ``dynamicresources/dynamicresources.go``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

import numpy as np

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import Booking
from plimsoll.devices.extended_resources import ExtendedRequests, claim_for, may_be_served, requests_for
from plimsoll.devices.holds import DeviceHold
from plimsoll.devices.node_answers import FAILED, FREE, NodeAnswer, NodeAnswers, points_of, shape_of
from plimsoll.devices.pod_claims import (
    ClaimProblem,
    are_unavailable,
    claims_in_stead,
    claims_of,
    given_up,
    points_of_allocated,
)
from plimsoll.devices.requests import MissingClassError, WantedClaim, wanted_claim
from plimsoll.devices.results import allocations
from plimsoll.devices.selectors import is_selected
from plimsoll.model.columns.columns import BoolArray, IntArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.gang_members import GangMembers
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim
from plimsoll.model.selectors import compile_node_matcher
from plimsoll.toolkit.node_matching import matching_nodes

#: The code of nodes from which an allocated claim cannot be used, in addition to the codes of the search.
UNAVAILABLE = 16

#: Bytes, encoded, of the largest shape of claims whose results are cached.
LARGEST_SHAPE = 32_768


class GoneDeviceError(ValueError):
    """A device that was chosen is no longer published."""


class NodeGroup(NamedTuple):
    """Nodes on which devices serve the same extended resources.

    Attributes:
        rows: Which nodes, shape (N,).
        claims: The claims to search devices for.
        extended: The requests of the claim for extended resources; None without one.
        answers: The results of the search; None if there are no claims to search for.
    """

    rows: BoolArray
    claims: tuple[WantedClaim, ...]
    extended: ExtendedRequests | None
    answers: NodeAnswers | None


class PodDevices:
    """The claims of a pod, and the search for their devices.

    Args:
        pod: The pod.
        claims: The claims that it names, in order.
        resources: The requested extended resources that a class serves.
        left_over: The claim for these from an earlier attempt.
    """

    def __init__(
        self,
        pod: Pod,
        claims: tuple[ResourceClaim, ...] = (),
        resources: tuple[str, ...] = (),
        left_over: ResourceClaim | None = None,
    ) -> None:
        self.claims = claims
        self.left_over = left_over
        self._pod = pod
        self._resources = resources
        self._book: DeviceBook | None = None
        self._groups: list[NodeGroup] = []
        self._opened: dict[int, NodeAnswer] = {}  #: by row, where devices are held that the pod may use
        self._unavailable: dict[int, BoolArray] = {}  #: nodes that each claim excludes, by its place

    @property
    def is_empty(self) -> bool:
        """Whether the pod needs no devices."""
        return not (self.claims or self._resources)

    def unused(self, rows: Collection[int], snapshot: Snapshot) -> tuple[ResourceClaim, ...]:
        """Claims that exclude the pod from one of these nodes, and that no other pod may use.

        A claim that is reserved for the pod's group counts while no member of the group has a node.
        """
        asked = list(rows)
        mine = given_up(self._pod, snapshot.objects.pod_groups, snapshot.index(GangMembers))
        claims = (
            self.claims[place] for place in sorted(self._unavailable) if self._unavailable[place][asked].any()
        )
        return tuple(c for c in claims if all(user.uid in mine for user in c.status.reserved_for))

    def codes(
        self, snapshot: Snapshot, most_steps: int, timeout_s: float, only: int | None = None
    ) -> IntArray:
        """The obstacles on each node as codes, shape (N,).

        Args:
            snapshot: A snapshot of all nodes.
            most_steps: Maximum number of steps of the search on one node.
            timeout_s: Seconds that drivers have to prepare devices.
            only: The row of the only node to search; the codes of other nodes are then meaningless.
        """
        book = snapshot.objects.ledger(DeviceBook)
        if self._book is None:
            self._book, self._groups = book, self._grouped(snapshot, book, most_steps)
        elif self._book is not book:  # a trial on a copy of the cluster
            other = PodDevices(self._pod, self.claims, self._resources, self.left_over)
            return other.codes(snapshot, most_steps, timeout_s, only)
        codes = np.zeros(len(snapshot), dtype=np.int64)
        for group in self._groups:
            if group.answers is not None:
                rows = group.rows if only is None else group.rows & (np.arange(len(codes)) == only)
                group.answers.renew(group.claims, snapshot.nodes, snapshot.node_mark, book, rows)
                codes[group.rows] = group.answers.codes[group.rows]
        self._open(snapshot, book)
        for row, answer in self._opened.items():
            codes[row] = answer.code
        self._leave_out(snapshot, book.now - timeout_s, codes)
        return codes

    def search_part(self, snapshot: Snapshot, most_steps: int) -> bool:
        """Search for devices on some nodes in advance; returns whether enough nodes remain for another part.

        Args:
            snapshot: A snapshot of all nodes.
            most_steps: Maximum number of steps of the search on one node.
        """
        book = snapshot.objects.ledger(DeviceBook)
        return any(
            group.answers is not None
            and group.answers.renew_part(group.claims, snapshot.nodes, snapshot.node_mark, book, group.rows)
            for group in self._grouped(snapshot, book, most_steps)
        )

    def held_on(self, snapshot: Snapshot, row: int, most_steps: int, timeout_s: float) -> DeviceHold | None:
        """The devices that the pod would get on one node, to hold for it; None if it would get none.

        Args:
            snapshot: A snapshot of all nodes.
            row: The row of the node.
            most_steps: Maximum number of steps of the search.
            timeout_s: Seconds that drivers have to prepare devices.
        """
        if self.codes(snapshot, most_steps, timeout_s, row)[row] != FREE:
            return None
        numbers = count(1)
        node = snapshot.node(row)
        found = self.bookings(row, node, lambda: f"{self._pod.uid}-{next(numbers)}")
        given = {each.claim.key: each.allocation for each in found if each.allocation is not None}
        return DeviceHold(self._pod.uid, self._pod.priority, node.name, given)

    def wanted(self, row: int) -> tuple[WantedClaim, ...]:
        """The claims to search devices for on the node of a row, once nodes were searched."""
        group = next((each for each in self._groups if each.rows[row]), None)
        return () if group is None else group.claims

    def failure(self, rows: RowArray) -> str:
        """The first error of the search among these rows; "" without an error."""
        for group in self._groups:
            if group.answers is not None:
                may_fail = group.answers.codes[rows] == FAILED
                may_fail |= np.isin(rows, list(self._opened))
                for row in rows[group.rows[rows] & may_fail].tolist():
                    if error := self._answer(group.answers, row).failure(group.claims):
                        return error
        return ""

    def points(self, snapshot: Snapshot) -> IntArray:
        """Points for early alternatives of lists, shape (N,); 0 where nothing has to be allocated."""
        points = np.zeros(len(snapshot), dtype=np.int64)
        for group in self._groups:
            if group.answers is not None:
                allocated = sum(points_of_allocated(claim) for claim in self.claims)
                points[group.rows] = group.answers.points[group.rows] + allocated
                for row, answer in self._opened.items():
                    if group.rows[row]:
                        here = 0 if answer.found is None else points_of(answer.found, group.claims)
                        points[row] = here + allocated
        return points

    def bookings(self, row: int, node: Node, share_id: Callable[[], str]) -> tuple[Booking, ...]:
        """The bookings of the claims on a feasible node, in order; that for extended resources is the last.

        Args:
            row: The row of the node.
            node: The node.
            share_id: Returns a new id, a UUID, for a share of a device.

        Raises:
            GoneDeviceError: A slice has changed since the node was found feasible.
        """
        group = next((each for each in self._groups if each.rows[row]), None)
        if group is None:
            return ()
        given: dict[str, AllocationResult] = {}
        if group.answers is not None:
            kept = self._answer(group.answers, row).found
            assert kept is not None, "the node is feasible"
            assert self._book is not None, "the nodes were searched"
            found = kept.found(group.claims, self._book.slices.pools_of(node))
            if found is None:
                raise GoneDeviceError(f"a device that was chosen on node {node.name} is no longer published")
            results = allocations(group.claims, found, node.name, share_id)
            given = {each.claim.key: result for each, result in zip(group.claims, results, strict=True)}
        bookings = [Booking(claim, given.get(claim.key)) for claim in self.claims]
        if group.extended is not None:
            made = group.claims[-1].claim
            bookings.append(Booking(made, given[made.key], group.extended))
        return tuple(bookings)

    def _grouped(self, snapshot: Snapshot, book: DeviceBook, most_steps: int) -> list[NodeGroup]:
        missing = [wanted_claim(claim, book.classes.get) for claim in self.claims if not claim.is_allocated]
        groups = []
        for resources, rows in self._served(snapshot):
            claims, extended = list(missing), None
            if resources or (self._resources and self.claims):
                extended = requests_for(self._pod, resources, book.class_of_resource)
                claims.append(wanted_claim(claim_for(self._pod, extended), book.classes.get))
            groups.append(
                NodeGroup(
                    rows,
                    tuple(claims),
                    extended,
                    answers_to(claims, book, most_steps, self._pod.metadata.uid, len(snapshot)),
                )
            )
        return groups

    def _served(self, snapshot: Snapshot) -> list[tuple[list[str], BoolArray]]:
        """The extended resources that devices serve, with the nodes, shape (N,), that do not have them."""
        if not self._resources:
            return [([], np.ones(len(snapshot), dtype=np.bool_))]
        lacking = np.ones((len(snapshot), len(self._resources)), dtype=np.bool_)
        for place, resource in enumerate(self._resources):
            axis = snapshot.axis_of(resource)
            if axis is not None:
                lacking[:, place] = snapshot.allocatable[:, axis] == 0
        if lacking.all():
            return [(list(self._resources), np.ones(len(snapshot), dtype=np.bool_))]
        kinds, which = np.unique(lacking, axis=0, return_inverse=True)
        which = which.reshape(-1)
        return [
            ([each for each, is_served in zip(self._resources, kind, strict=True) if is_served], which == at)
            for at, kind in enumerate(kinds.tolist())
        ]

    def _answer(self, answers: NodeAnswers, row: int) -> NodeAnswer:
        return self._opened.get(row) or answers.answer(row)

    def _open(self, snapshot: Snapshot, book: DeviceBook) -> None:
        """Repeat the search where this pod may use held devices, as if these were free."""
        self._opened.clear()
        holds = book.open_to(self._pod) if book.holds else ()
        if not holds:
            return
        pools = frozenset().union(*(each.pools for each in holds))
        taken = book.taken.without(allocation for each in holds for allocation in each.given.values())
        for group in self._groups:
            if group.answers is not None:
                for row in group.answers.rows_of(pools):
                    if group.rows[row]:
                        node = snapshot.node(row)
                        self._opened[row] = group.answers.answer_if(group.claims, node, book, taken)

    def _leave_out(self, snapshot: Snapshot, begun_by: float, codes: IntArray) -> None:
        """Reject nodes from which an allocated claim cannot be used, and note the claim."""
        free = codes == FREE
        for place, claim in enumerate(self.claims):
            allocation = claim.status.allocation
            if allocation is None:
                continue
            if are_unavailable(claim, begun_by):
                elsewhere = free
            elif allocation.node_selector is None:
                continue
            else:
                elsewhere = free & ~matching_nodes(
                    compile_node_matcher({}, allocation.node_selector), snapshot
                )
            if elsewhere.any():
                codes[elsewhere] = UNAVAILABLE
                self._unavailable[place] = elsewhere | self._unavailable.get(place, False)


def resources_of(template: PodTemplate, book: DeviceBook) -> tuple[str, ...]:
    """Extended resources that pods of a template request and a class serves, in order."""
    if not book.classes:
        return ()
    names = sorted(name for name, amount in template.requests.items() if amount > 0 and may_be_served(name))
    return tuple(name for name in names if book.class_of_resource(name) is not None)


def needs_devices(pod: PodInfo, book: DeviceBook) -> bool:
    """Whether a pod has resource claims, or requests resources that devices serve."""
    return bool(pod.pod.spec.resource_claims) or bool(resources_of(pod.template, book))


def claims_wanted(
    pod: PodInfo, book: DeviceBook, groups: Mapping[str, PodGroup]
) -> tuple[ResourceClaim, ...]:
    """The claims of a pod; for a stand-in, the claims that its pod will have.

    Raises:
        ClaimProblem: A claim cannot be used.
    """
    return (claims_of if pod.stands_in_for is None else claims_in_stead)(pod.pod, book.claims, groups)


def pod_devices(pod: PodInfo, book: DeviceBook, groups: Mapping[str, PodGroup]) -> PodDevices | None:
    """The claims of a pod or of a stand-in; None without claims, or if they cannot be used."""
    try:
        devices = PodDevices(pod.pod, claims_wanted(pod, book, groups), resources_of(pod.template, book))
    except ClaimProblem:
        return None
    return None if devices.is_empty else devices


def held_for(
    pod: PodInfo, snapshot: Snapshot, row: int, most_steps: int, timeout_s: float
) -> DeviceHold | None:
    """The devices that a pod, or a stand-in, would get on a node; None if it would get none.

    Args:
        pod: The pod.
        snapshot: A snapshot of all nodes.
        row: The row of the node.
        most_steps: Maximum number of steps of the search.
        timeout_s: Seconds that drivers have to prepare devices.
    """
    devices = pod_devices(pod, snapshot.objects.ledger(DeviceBook), snapshot.objects.pod_groups)
    try:
        return None if devices is None else devices.held_on(snapshot, row, most_steps, timeout_s)
    except MissingClassError:
        return None


def answers_to(
    claims: Sequence[WantedClaim], book: DeviceBook, most_steps: int, pod: str, rows: int
) -> NodeAnswers | None:
    """The results of nodes for claims of this shape; None without claims.

    They are cached if the shape is small, and otherwise until another pod, by uid, has a large one: a search
    in parts goes on where it was.
    """
    if not claims:
        return None
    shape = shape_of(claims)
    if len(shape) > LARGEST_SHAPE:
        digest = blake2b(shape, digest_size=16).digest()
        keys = [each.claim.key for each in claims]
        return book.kept_for(pod, keys, (digest, most_steps), lambda: NodeAnswers(is_selected, most_steps))
    return book.kept((shape, most_steps), lambda: NodeAnswers(is_selected, most_steps), rows)
