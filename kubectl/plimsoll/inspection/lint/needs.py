"""Defines rules about requests, priority classes and claims of pods."""

from collections.abc import Iterable, Iterator

from plimsoll.inspection.lint.subjects import LintedWorkload, Neighbourhood
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.requests import incoming, to_integer
from plimsoll.model.quantity import QuantityError

_CPU, _MEMORY = "cpu", "memory"


def no_requests(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """Containers have no requests of cpu or memory; a limit alone counts as a request."""
    spec = workload.pod.spec
    found = []
    for resource in (_CPU, _MEMORY):
        if spec.resources is not None and resource in {**spec.resources.limits, **spec.resources.requests}:
            continue
        bare = [
            each.name
            for each in spec.containers
            if resource not in each.resources.requests and resource not in each.resources.limits
        ]
        if bare:
            found.append(f"no {resource} for {', '.join(bare)}")
    if found:
        yield f"containers request {' and '.join(found)}"


def too_large(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """No node satisfies the requests, even when empty."""
    requests = {name: amount for name, amount in incoming(workload.pod).items() if amount > 0}
    nodes = around.eligible(workload) or around.nodes
    fitting = (all(room[name] >= requests[name] for name in requests) for room in _rooms(nodes, requests))
    if not nodes or any(fitting):
        return
    rooms = list(_rooms(nodes, requests))
    for name, amount in requests.items():
        largest = max(room[name] for room in rooms)
        if amount > largest:
            yield f"it requests {shown(name, amount)} {name}, and the largest node has {shown(name, largest)}"
            return
    wanted = ", ".join(f"{shown(name, amount)} {name}" for name, amount in sorted(requests.items()))
    yield f"no single node has all that it requests: {wanted}"


def _rooms(nodes: Iterable[Node], requests: Iterable[str]) -> Iterator[dict[str, int]]:
    """The capacity of empty nodes, in the units of requests."""
    for node in nodes:
        found = {}
        for name in requests:
            try:
                found[name] = to_integer(name, node.status.allocatable.get(name, 0))
            except QuantityError:
                found[name] = 0
        yield found


def shown(resource: str, amount: int) -> str:
    """An amount formatted for people."""
    if resource == _CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource == _MEMORY or resource.startswith("hugepages-") or resource == "ephemeral-storage":
        for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if amount >= size and amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


def unknown_class(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """The priority class does not exist; admission would reject the pods."""
    name = workload.pod.spec.priority_class_name
    if name and name not in around.classes:
        yield f'there is no PriorityClass "{name}"'


def missing_claims(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """The pod's claims do not exist."""
    for name in _claims(workload):
        if f"{workload.namespace}/{name}" not in around.claims:
            yield f'there is no PersistentVolumeClaim "{name}" in the namespace'


def unbound_claims(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """Claims are lost, or should be bound by now; claims that wait for a first consumer are not meant."""
    for name in _claims(workload):
        claim = around.claims.get(f"{workload.namespace}/{name}")
        if claim is None or claim.status.phase not in ("Pending", "Lost"):
            continue
        storage = around.storage_classes.get(claim.spec.storage_class_name or "")
        waits = storage is not None and storage.volume_binding_mode == "WaitForFirstConsumer"
        if claim.status.phase == "Lost":
            yield f'the volume of claim "{name}" is lost'
        elif not waits or workload.pod.node_name:
            yield f'claim "{name}" is not bound'


def _claims(workload: LintedWorkload) -> list[str]:
    return [
        volume.persistent_volume_claim.claim_name
        for volume in workload.pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]
