"""Converts the result of a search into claim status: devices, configurations, and the nodes that reach them.

Source: Kubernetes v1.36, ``structured/internal/incubating/allocator_incubating.go``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from plimsoll.devices.allocator import Found, Given
from plimsoll.devices.amounts import written
from plimsoll.devices.requests import WantedClaim, WantedDevices
from plimsoll.model.kinds.resource_claim import (
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    Configuration,
)
from plimsoll.model.selectors import (
    NAME_FIELD,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)


def allocations(
    claims: Sequence[WantedClaim], found: Found, node: str, share_id: Callable[[], str]
) -> tuple[AllocationResult, ...]:
    """The allocation of each claim.

    Args:
        claims: The claims of the search.
        found: The solution.
        node: The node's name.
        share_id: Creates the name of a share of a device, a UUID.
    """
    return tuple(
        AllocationResult(
            devices=AllocatedDevices(
                results=tuple(_result(each, share_id) for each in given),
                config=_configurations(position, claim, found.chosen),
            ),
            node_selector=_selector(given, node),
        )
        for position, (claim, given) in enumerate(zip(claims, found.given, strict=True))
    )


def _result(given: Given, share_id: Callable[[], str]) -> AllocatedDevice:
    device, capacity = given.device.device, given.capacity
    names = given.device.published_names if capacity else {}
    return AllocatedDevice(
        request=given.wanted.name,
        driver=given.device.id.driver,
        pool=given.device.id.pool,
        device=device.name,
        admin_access=True if given.wanted.is_admin else None,
        tolerations=given.wanted.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=None if capacity is None else share_id(),
        consumed_capacity={names[name]: written(amount) for name, amount in (capacity or {}).items()},
    )


def _configurations(
    position: int, claim: WantedClaim, chosen: Mapping[tuple[int, int], int]
) -> tuple[Configuration, ...]:
    """Configurations of the classes, each once, then of the claim, once per named request, as upstream."""
    wanted = [
        request.alternatives[chosen.get((position, place), 0)]
        for place, request in enumerate(claim.requests)
        if request.alternatives
    ]
    made: list[Configuration] = []
    seen: set[str] = set()
    for each in wanted:
        if each.device_class.name in seen:
            continue
        seen.add(each.device_class.name)
        names = [other.name for other in wanted if other.device_class.name == each.device_class.name]
        made += [
            {"source": "FromClass", "requests": names, **config} for config in each.device_class.spec.config
        ]
    for config in claim.claim.spec.devices.config:
        made += [{"source": "FromClaim", **config}] * _times(config, wanted)
    return tuple(made)


def _times(config: Configuration, wanted: Sequence[WantedDevices]) -> int:
    named = config.get("requests")
    if not isinstance(named, list) or not named:
        return 1
    return sum(1 for each in wanted if each.request in named or (each.alternative and each.name in named))


_Joined: TypeAlias = dict[tuple[str, str, frozenset[str]], NodeSelectorRequirement]
"""Requirements by what tells them apart: several devices of a slice have the same."""


def _selector(given: Sequence[Given], node: str) -> NodeSelector | None:
    """The nodes that reach all the devices; None for every node."""
    requirements: _Joined = {}
    fields: _Joined = {}
    for each in given:
        spec, device = each.device.slice.spec, each.device.device
        place = device if spec.per_device_node_selection else spec
        if place.node_name or device.binds_to_node:
            named = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(named,)),))
        for term in () if place.node_selector is None else place.node_selector.node_selector_terms[:1]:
            _join(requirements, term.match_expressions)
            _join(fields, term.match_fields)
    if not requirements and not fields:
        return None
    joined = NodeSelectorTerm(
        match_expressions=tuple(requirements.values()), match_fields=tuple(fields.values())
    )
    return NodeSelector(node_selector_terms=(joined,))


def _join(known: _Joined, new: Sequence[NodeSelectorRequirement]) -> None:
    for each in new:
        known.setdefault((each.key, each.operator, frozenset(each.values)), each)
