"""Finds the resource claims of a pod, and checks their owners and the preparation of their devices.

A claim that a pod lists exactly as its PodGroup of the core API does is the group's: members share it, and it
is reserved for the group.

Source: Kubernetes v1.36, ``plugins/dynamicresources/dynamicresources.go`` and
``dynamic-resource-allocation/resourceclaim/resourceclaim.go``; KEP-5729.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from plimsoll.devices.search_limits import LONGEST_MESSAGE
from plimsoll.model.gang_members import GangMembers
from plimsoll.model.kinds.gang_marks import CORES
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod import Pod, PodResourceClaim
from plimsoll.model.kinds.pod_group import CORE, PodGroup, core_key
from plimsoll.model.kinds.resource_claim import (
    AllocatedDevice,
    AllocationResult,
    Consumer,
    ResourceClaim,
)
from plimsoll.model.shortened import shortened

#: Alternatives are scored by their position: the first of eight scores most.
MOST_ALTERNATIVES = 8


class Prepared(Enum):
    """The progress of a driver with a device that it must prepare before the pod is bound."""

    YES = "yes"
    NOT_YET = "not yet"
    FAILED = "failed"


class ClaimProblem(Exception):
    """A claim of the pod cannot be used; the message has the reason in upstream's words."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, LONGEST_MESSAGE))


def claims_of(
    pod: Pod, claims: Mapping[str, ResourceClaim], groups: Mapping[str, PodGroup]
) -> tuple[ResourceClaim, ...]:
    """The claims of a pod, in order.

    Args:
        pod: The pod.
        claims: Claims by namespace and name.
        groups: PodGroups by ``group_key``.

    Raises:
        ClaimProblem: A claim is missing, is being deleted, or belongs to another pod or group.
    """
    found = []
    for written, name, claim in _written_claims(pod, claims, groups):
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
        if written.resource_claim_name is None and not is_owned(claim, pod):
            if not _is_of_group(claim, pod):
                raise ClaimProblem(
                    f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
                )
            _check_group(claim, pod, groups)
        found.append(claim)
    return tuple(found)


def used_claims(
    pod: Pod, claims: Mapping[str, ResourceClaim], extended: ResourceClaim | None
) -> tuple[ResourceClaim, ...]:
    """The existing claims that a pod names, and the claim for its extended resources."""
    names = (_name(pod, each) for each in pod.spec.resource_claims)
    found = (claims.get(f"{pod.namespace}/{name}") for name in names if name is not None)
    return tuple(claim for claim in (*found, extended) if claim is not None)


def own_devices(
    pod: Pod, claims: Mapping[str, ResourceClaim], extended: ResourceClaim | None
) -> tuple[AllocationResult, ...]:
    """Devices that become free when this pod leaves: those of its claims that no other pod uses."""
    return tuple(
        claim.status.allocation
        for claim in used_claims(pod, claims, extended)
        if claim.status.allocation is not None and is_usable_by(claim, pod)
    )


def shared_keys(pod: Pod, claims: Mapping[str, ResourceClaim]) -> tuple[str, ...]:
    """Keys of the claims that outlive the pod and that others may use: those it names, and its group's."""
    found = []
    for written in pod.spec.resource_claims:
        name = _name(pod, written)
        claim = claims.get(f"{pod.namespace}/{name}")
        is_named = written.resource_claim_name is not None
        if name is not None and (is_named or (claim is not None and _is_of_group(claim, pod))):
            found.append(f"{pod.namespace}/{name}")
    return tuple(found)


def user_of(claim: ResourceClaim, pod: Pod, groups: Mapping[str, PodGroup]) -> Consumer:
    """For whom a claim of the pod is reserved: its PodGroup if that lists the claim as the pod does, or it.

    Args:
        claim: One of the pod's claims.
        pod: The pod.
        groups: PodGroups by ``group_key``.
    """
    group = groups.get(core_key(pod))
    if group is not None and any(
        written in group.spec.shared_claims
        for written in pod.spec.resource_claims
        if _name(pod, written) == claim.name
    ):
        return Consumer(api_group=CORE, resource="podgroups", name=group.name, uid=group.uid)
    return Consumer(resource="pods", name=pod.name, uid=pod.uid)


def given_up(pod: Pod, groups: Mapping[str, PodGroup], members: GangMembers) -> frozenset[str]:
    """Uids of users without need while the pod has no node: it and, if no member is placed, its group.

    Args:
        pod: The pod.
        groups: PodGroups by ``group_key``.
        members: The placed pods by group.
    """
    key = core_key(pod)
    group = groups.get(key)
    if group is None or set(members.members.get((CORES, key), ())) - {pod.uid}:
        return frozenset((pod.uid,))
    return frozenset((pod.uid, group.uid))


def claims_in_stead(
    pod: Pod, claims: Mapping[str, ResourceClaim], groups: Mapping[str, PodGroup]
) -> tuple[ResourceClaim, ...]:
    """The future claims of the pod for which this one stands in, in order.

    Claims that the pod names itself stay, and those of its group; from each other template another claim will
    be created, equal to that of the pod whose shape it has. The template is not read: its spec is immutable.

    Args:
        pod: The stand-in, with the names of the other pod's claims.
        claims: Claims by namespace and name.
        groups: PodGroups by ``group_key``.

    Raises:
        ClaimProblem: One is missing, or a named one is being deleted.
    """
    found = []
    for written, name, claim in _written_claims(pod, claims, groups):
        if written.resource_claim_name is None and not _is_of_group(claim, pod):
            metadata = ObjectMeta(name=name, namespace=pod.namespace, uid=f"{pod.uid}/{written.name}")
            found.append(ResourceClaim(metadata=metadata, spec=claim.spec))
            continue
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
        found.append(claim)
    return tuple(found)


def is_owned(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod controls the claim."""
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.uid


def _is_of_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a PodGroup of the name that the pod has controls the claim."""
    owner = claim.metadata.controller
    return (
        owner is not None
        and owner.kind == "PodGroup"
        and owner.api_version.startswith(f"{CORE}/")
        and f"{CORE}/{claim.namespace}/{owner.name}" == core_key(pod)
    )


def _check_group(claim: ResourceClaim, pod: Pod, groups: Mapping[str, PodGroup]) -> None:
    """Raise ClaimProblem if the claim was made for an earlier group of the same name."""
    owner, group = claim.metadata.controller, groups.get(core_key(pod))
    if owner is None or group is None or group.uid != owner.uid:
        name = core_key(pod).removeprefix(f"{CORE}/")
        raise ClaimProblem(
            f"ResourceClaim {claim.key} was not created for PodGroup {name} (PodGroup is not owner)"
        )


def _written_claims(
    pod: Pod, claims: Mapping[str, ResourceClaim], groups: Mapping[str, PodGroup]
) -> Iterator[tuple[PodResourceClaim, str, ResourceClaim]]:
    """For each claim that the pod needs: the pod's name for it, the claim's name, and the claim.

    Raises:
        ClaimProblem: One is missing.
    """
    for written in pod.spec.resource_claims:
        name = _name(pod, written)
        if name is None and _is_awaited(pod, written):
            group = groups.get(core_key(pod))
            if group is not None and written in group.spec.shared_claims:
                raise ClaimProblem(
                    f'pod "{pod.key}": ResourceClaim "{written.name}" of PodGroup {group.key} not created yet'
                )
            raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')
        if name is None:
            continue
        claim = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimProblem(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        yield written, name, claim


def _is_awaited(pod: Pod, written: PodResourceClaim) -> bool:
    """Whether the controller of claims has yet to say which claim this is."""
    return all(made.name != written.name for made in pod.status.resource_claim_statuses)


def _name(pod: Pod, written: PodResourceClaim) -> str | None:
    """The name of the claim; None if none is needed, or it is not known yet."""
    if written.resource_claim_name is not None:
        return written.resource_claim_name
    for made in pod.status.resource_claim_statuses:
        if made.name == written.name:
            return made.resource_claim_name
    return None


def is_usable_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether no other pod may use the claim."""
    return all(each.uid == pod.uid for each in claim.status.reserved_for)


def are_unavailable(claim: ResourceClaim, begun_by: float) -> bool:
    """Whether the preparation of some device failed, or began before that time of the epoch."""
    allocation = claim.status.allocation
    for each in _conditional(claim):
        state = _condition(claim, each)
        if state is Prepared.FAILED:
            return True
        if (
            state is Prepared.NOT_YET
            and allocation is not None
            and allocation.allocation_timestamp is not None
        ):
            return allocation.allocation_timestamp.timestamp() < begun_by
    return False


def unprepared(claim: ResourceClaim) -> tuple[str, str]:
    """Why devices of an allocated claim will not be prepared, and why they are not yet; "" for no reason."""
    waiting = ""
    for each in _conditional(claim):
        state = _condition(claim, each)
        if state is Prepared.FAILED:
            failure = next(
                said
                for status in claim.status.devices
                for said in status.conditions
                if said.status == "True" and said.type in each.binding_failure_conditions
            )
            return (
                f"device binding failed: claim={claim.key}, reason={failure.reason},"
                f' message="{failure.message}"'
            ), ""
        if state is Prepared.NOT_YET:
            waiting = f"device binding timeout: claim={claim.key}"
    return "", waiting


def points_of_allocated(claim: ResourceClaim) -> int:
    """Eight for each list of alternatives whose first one was allocated, seven for the second, and so on."""
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    names = {each.request for each in allocation.devices.results}
    total = 0
    for request in claim.spec.devices.requests:
        for place, each in enumerate(request.first_available):
            if f"{request.name}/{each.name}" in names:
                total += MOST_ALTERNATIVES - place
                break
    return total


def _conditional(claim: ResourceClaim) -> list[AllocatedDevice]:
    allocation = claim.status.allocation
    return [] if allocation is None else [r for r in allocation.devices.results if r.binding_conditions]


def _condition(claim: ResourceClaim, result: AllocatedDevice) -> Prepared:
    said = next(
        (
            each
            for each in claim.status.devices
            # Upstream does not compare shares: the first status of a device counts for all of them.
            if (each.driver, each.pool, each.device) == (result.driver, result.pool, result.device)
        ),
        None,
    )
    if said is None:
        return Prepared.NOT_YET
    true = {each.type for each in said.conditions if each.status == "True"}
    if not true.isdisjoint(result.binding_failure_conditions):
        return Prepared.FAILED
    return Prepared.YES if true.issuperset(result.binding_conditions) else Prepared.NOT_YET
