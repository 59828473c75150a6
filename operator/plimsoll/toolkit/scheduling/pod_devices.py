"""PodDevices: the claims of a pod in one attempt, with their devices on each node.

Nodes are asked in groups: on some nodes devices serve an extended resource that others have themselves.

Axis letter: N nodes. Source: kube-scheduler v1.36, ``dynamicresources/dynamicresources.go``.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.extended_resources import ExtendedRequests, claim_for, requests_for
from plimsoll.devices.node_answers import FREE, NodeAnswers, shape_of
from plimsoll.devices.pod_claims import are_unavailable, is_usable_by, points_of_allocated
from plimsoll.devices.requests import WantedClaim, wanted_claim
from plimsoll.devices.results import allocations
from plimsoll.devices.selectors import is_selected
from plimsoll.framework.devices.ports import Booking
from plimsoll.model.columns.columns import BoolArray, IntArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.devices.resource_claim import AllocationResult, ResourceClaim
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.selectors import compile_node_matcher
from plimsoll.toolkit.scheduling.node_matching import matching_nodes

#: The code of a node from which an allocated claim cannot be used, in addition to those of the search.
UNAVAILABLE = 16


class NodeGroup(NamedTuple):
    """Nodes on which devices serve the same extended resources.

    Attributes:
        rows: Shape (N,): which nodes.
        claims: What is searched for there.
        extended: What the claim for extended resources asks for there; None without one.
        answers: Of the search; None where nothing is searched for.
    """

    rows: BoolArray
    claims: tuple[WantedClaim, ...]
    extended: ExtendedRequests | None
    answers: NodeAnswers | None


class PodDevices:
    """The claims of a pod.

    Args:
        pod: The pod.
        claims: Those that it names, in order.
        resources: Extended resources that it requests and that a class serves.
        left_over: The claim for these of an earlier attempt.
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
        self._groups: list[NodeGroup] = []
        self._unavailable: set[int] = set()

    @property
    def is_empty(self) -> bool:
        """Whether the pod needs no devices."""
        return not (self.claims or self._resources)

    @property
    def unused(self) -> tuple[ResourceClaim, ...]:
        """Claims that keep the pod from some node, and that no other pod may use."""
        claims = (self.claims[place] for place in sorted(self._unavailable))
        return tuple(claim for claim in claims if is_usable_by(claim, self._pod))

    def codes(self, snapshot: Snapshot, most_steps: int, timeout_s: float) -> IntArray:
        """What keeps the pod from each node, shape (N,).

        Args:
            snapshot: Of all nodes.
            most_steps: Of a search on one node.
            timeout_s: How long drivers have to prepare devices.
        """
        book = snapshot.objects.ledger(DeviceBook)
        if not self._groups:
            self._groups = self._grouped(snapshot, book, most_steps)
        codes = np.zeros(len(snapshot), dtype=np.int64)
        for group in self._groups:
            if group.answers is not None:
                group.answers.renew(group.claims, snapshot.nodes, snapshot.node_mark, book, group.rows)
                codes[group.rows] = group.answers.codes[group.rows]
        self._leave_out(snapshot, book.now - timeout_s, codes)
        return codes

    def failure(self, rows: RowArray) -> str:
        """Why the search failed on the first of these rows where it did; "" where it did on none."""
        for group in self._groups:
            if group.answers is not None:
                for row in rows[group.rows[rows]].tolist():
                    if error := group.answers.answer(row).error:
                        return error
        return ""

    def points(self, snapshot: Snapshot) -> IntArray:
        """For early alternatives of lists, shape (N,); 0 where nothing is to be allocated."""
        points = np.zeros(len(snapshot), dtype=np.int64)
        for group in self._groups:
            if group.answers is not None:
                allocated = sum(points_of_allocated(claim) for claim in self.claims)
                points[group.rows] = group.answers.points[group.rows] + allocated
        return points

    def bookings(self, row: int, node: str, share_id: Callable[[], str]) -> tuple[Booking, ...]:
        """What the claims get on a feasible node, in order; that for extended resources is the last one.

        Args:
            row: Of the node.
            node: Its name.
            share_id: Makes the name of a share of a device, a UUID.
        """
        group = next((each for each in self._groups if each.rows[row]), None)
        if group is None:
            return ()
        given: dict[str, AllocationResult] = {}
        if group.answers is not None:
            found = group.answers.answer(row).found
            assert found is not None, "the node is feasible"
            results = allocations(group.claims, found, node, share_id)
            given = {each.claim.key: result for each, result in zip(group.claims, results, strict=True)}
        bookings = [Booking(claim, given.get(claim.key)) for claim in self.claims]
        if group.extended is not None:
            made = group.claims[-1].claim
            bookings.append(Booking(made, given[made.key], group.extended))
        return tuple(bookings)

    def _grouped(self, snapshot: Snapshot, book: DeviceBook, most_steps: int) -> list[NodeGroup]:
        missing = [wanted_claim(claim, book.classes.get) for claim in self.claims if not claim.is_allocated]
        served = np.zeros(len(snapshot), dtype=np.int64)
        for place, resource in enumerate(self._resources):
            axis = snapshot.axis_of(resource)
            has = np.zeros(len(snapshot)) if axis is None else snapshot.allocatable[:, axis]
            served += (has == 0).astype(np.int64) << place
        groups = []
        for kind in np.unique(served).tolist():
            resources = [each for place, each in enumerate(self._resources) if kind >> place & 1]
            claims, extended = list(missing), None
            if resources or (self._resources and self.claims):
                extended = requests_for(self._pod, resources, book.class_of_resource)
                claims.append(wanted_claim(claim_for(self._pod, extended), book.classes.get))
            groups.append(
                NodeGroup(served == kind, tuple(claims), extended, answers_to(claims, book, most_steps))
            )
        return groups

    def _leave_out(self, snapshot: Snapshot, begun_by: float, codes: IntArray) -> None:
        """Refuse nodes from which an allocated claim cannot be used, and remember the claim."""
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
                self._unavailable.add(place)


def answers_to(claims: Sequence[WantedClaim], book: DeviceBook, most_steps: int) -> NodeAnswers | None:
    """What nodes answer to claims of this shape, as far as it is known; None without claims."""
    if not claims:
        return None
    return book.kept((shape_of(claims), most_steps), lambda: NodeAnswers(is_selected, most_steps))
