"""Says which requests the admission of a VerticalPodAutoscaler gives to a new pod.

In every update mode but Off, a container that has a recommendation is created with its target, capped first
by the LimitRanges of the namespace for containers, then by the policy for the container: each time to the
minimum, then to the maximum. A LimitRange bounds the request by what its limit will be in proportion. Only
cpu and memory change, or those that the policy controls. With RequestsAndLimits, a limit keeps its proportion
to the request, rounded down; with RequestsOnly, the limit caps the request. Of several autoscalers of one
controller the oldest counts; of equally old ones, that whose name sorts first.

Differs: LimitRanges for whole pods, the global caps of VPA's own flags, and its startup boost (alpha) are not
read.
Source: kubernetes/autoscaler 068565c8, ``vertical-pod-autoscaler/pkg``: ``admission-controller``,
``utils/vpa``.
"""

from datetime import UTC, datetime
from typing import Self

import msgspec

from plimsoll.model.autoscalers.limit_ranges import CONTAINER, limits_of, ranges_of
from plimsoll.model.autoscalers.vertical_pod_autoscaler import (
    ANY_CONTAINER,
    OFF,
    REQUESTS_AND_LIMITS,
    ContainerPolicy,
    VerticalPodAutoscaler,
)
from plimsoll.model.kinds.limit_range import Limit
from plimsoll.model.kinds.metadata import OwnerReference
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Container, Pod, Quantities, ResourceRequirements
from plimsoll.model.quantity import QuantityValue, milli, nanos, readable, units

Target = tuple[str, str, str]
"""Namespace, kind and name of a controller."""

#: The resources that are controlled if a policy does not name them.
CONTROLLED = ("cpu", "memory")

_LATEST = datetime.max.replace(tzinfo=UTC)


class Autoscalers:
    """The readable autoscalers: a ledger of the cluster's objects.

    Attributes:
        by_target: By the controller that they target, the oldest first.
    """

    def __init__(self) -> None:
        self.by_target: dict[Target, tuple[VerticalPodAutoscaler, ...]] = {}

    def copied(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.by_target = dict(self.by_target)
        return twin

    def replace(self, old: VerticalPodAutoscaler | None, new: VerticalPodAutoscaler | None) -> None:
        """Put a state of an autoscaler in the place of an earlier one; None for none."""
        target = None if old is None else _target(old)
        if old is not None and target is not None:
            others = [each for each in self.by_target.pop(target, ()) if each.key != old.key]
            if others:
                self.by_target[target] = tuple(others)
        target = None if new is None else _target(new)
        if new is not None and target is not None:
            self.by_target[target] = tuple(sorted((*self.by_target.get(target, ()), new), key=_age))

    def of(self, namespace: str, controller: OwnerReference) -> VerticalPodAutoscaler | None:
        """The one that sets the requests of a controller's new pods."""
        found = self.by_target.get((namespace, controller.kind, controller.name), ())
        return next((each for each in found if each.spec.update_policy.update_mode != OFF), None)


def recommended(
    pod: Pod, containers: tuple[Container, ...], objects: ClusterObjects
) -> tuple[Container, ...]:
    """The containers as admission creates them; the same ones if no autoscaler changes them.

    Args:
        pod: The pod whose controller creates the new one.
        containers: Those of the new pod before.
        objects: The objects of the cluster.
    """
    autoscalers = objects.known_ledger(Autoscalers)
    controller = pod.metadata.controller
    if autoscalers is None or controller is None:
        return containers
    found = autoscalers.of(pod.namespace, objects.above(pod) or controller)
    if found is None:
        return containers
    targets = {
        each.container_name: each.target for each in found.status.recommendation.container_recommendations
    }
    limits = [*limits_of(ranges_of(pod.namespace, objects), CONTAINER)]
    changed = tuple([_admitted(each, targets.get(each.name), found, limits) for each in containers])
    return containers if changed == containers else changed


def _admitted(
    container: Container, target: Quantities | None, autoscaler: VerticalPodAutoscaler, ranges: list[Limit]
) -> Container:
    policy = _policy_of(container.name, autoscaler)
    if target is None or policy.mode == OFF:
        return container
    controlled = CONTROLLED if policy.controlled_resources is None else policy.controlled_resources
    before = container.resources
    limits = dict(before.limits)
    capped: dict[str, QuantityValue] = {}
    for name in controlled:
        if name in target:
            amount = _between(target[name], *_bounds(name, before, ranges)) if ranges else target[name]
            amount = _between(amount, policy.min_allowed.get(name, 0), policy.max_allowed.get(name, 0))
            is_capped = policy.controlled_values != REQUESTS_AND_LIMITS
            capped[name] = _between(amount, 0, readable(limits.get(name, 0))) if is_capped else amount
    if policy.controlled_values == REQUESTS_AND_LIMITS:
        for name, request in capped.items():
            limit = readable(limits.get(name, 0))
            if nanos(limit) > 0 and nanos(request) > 0:
                limits[name] = _scaled(name, limit, readable(before.requests.get(name, 0)), request)
    return msgspec.structs.replace(
        container, resources=ResourceRequirements(requests={**before.requests, **capped}, limits=limits)
    )


def _policy_of(container: str, autoscaler: VerticalPodAutoscaler) -> ContainerPolicy:
    policies = {each.container_name: each for each in autoscaler.spec.resource_policy.container_policies}
    return policies.get(container) or policies.get(ANY_CONTAINER) or ContainerPolicy()


def _bounds(
    name: str, before: ResourceRequirements, ranges: list[Limit]
) -> tuple[QuantityValue, QuantityValue]:
    """Between what a request may be, so that it and its limit are admitted; 0 for no bound."""
    least = max((readable(each.min.get(name, 0)) for each in ranges), key=nanos)
    most = min((readable(each.max[name]) for each in ranges if name in each.max), key=nanos, default=0)
    request, limit = readable(before.requests.get(name, 0)), readable(before.limits.get(name, 0))
    if nanos(limit) <= 0:
        return least, 0
    if nanos(request) <= 0:
        return least, most
    of_limit = _proportional(name, request, limit, least)
    return max(least, of_limit, key=nanos), _proportional(name, request, limit, most)


def _between(amount: QuantityValue, least: QuantityValue, most: QuantityValue) -> QuantityValue:
    """The amount, capped to the least and then to the most; 0 is no bound."""
    if nanos(least) > 0 and nanos(amount) < nanos(least):
        amount = least
    return most if 0 < nanos(most) < nanos(amount) else amount


def _scaled(name: str, limit: QuantityValue, before: QuantityValue, request: QuantityValue) -> QuantityValue:
    """The limit in its former proportion to the request; without a former one, it equals the request."""
    if nanos(before) <= 0 or nanos(before) == nanos(limit):
        return request
    return _proportional(name, limit, before, request)


def _proportional(
    name: str, amount: QuantityValue, base: QuantityValue, result: QuantityValue
) -> QuantityValue:
    """What is to the amount as the result is to the base, rounded down to milli or, but for cpu, to units."""
    if name == "cpu":
        return f"{milli(amount) * milli(result) // milli(base)}m"
    return str(units(amount) * units(result) // units(base))


def _target(autoscaler: VerticalPodAutoscaler) -> Target | None:
    target = autoscaler.spec.target_ref
    return None if target is None else (autoscaler.metadata.namespace, target.kind, target.name)


def _age(autoscaler: VerticalPodAutoscaler) -> tuple[datetime, str]:
    return autoscaler.metadata.creation_timestamp or _LATEST, autoscaler.metadata.name
