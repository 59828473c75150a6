"""Says what the LimitRanges of a namespace set on a new pod or refuse of it.

A running pod has the defaults of the time when it was created; an annotation names them. Its replacement gets
those of today. Minima, maxima and ratios hold for new pods only, so that a pod may run which would not be
created again.

Edges: of several LimitRanges with a default, that whose name sorts first sets it. An unreadable amount
counts as 0. Limits for PersistentVolumeClaims do not concern a pod that exists.
Source: Kubernetes v1.36 ``plugin/pkg/admission/limitranger``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from plimsoll.model.kinds.limit_range import Limit, LimitRange, LimitRanges
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Container, Pod, Quantities, ResourceRequirements
from plimsoll.model.quantity import BILLION, QuantityValue, nanos, readable

#: Where the API server names what it has set, such as "LimitRanger plugin set: cpu request for container a".
ANNOTATION = "kubernetes.io/limit-ranger"

_PREFIX = "LimitRanger plugin set: "
_SET = re.compile(
    r"(?P<names>.+) (?P<field>request|limit) for (?P<list>init container|container) (?P<of>\S+)"
)
CONTAINER, _POD = "Container", "Pod"


def ranges_of(namespace: str, objects: ClusterObjects) -> tuple[LimitRange, ...]:
    """The LimitRanges of a namespace, sorted by their names."""
    ledger = objects.known_ledger(LimitRanges)
    return () if ledger is None else ledger.by_namespace.get(namespace, ())


def with_defaults(pod: Pod, ranges: Iterable[LimitRange]) -> Pod:
    """The pod with the defaults of today; the same one if nothing changes.

    Args:
        pod: A pod as created, with the annotation that names what was set.
        ranges: The LimitRanges of its namespace.
    """
    said = pod.metadata.annotations.get(ANNOTATION, "") if pod.metadata.annotations else ""
    ranges = tuple(ranges)
    if not said and not ranges:
        return pod
    earlier, limits = _set_earlier(said), list(limits_of(ranges, CONTAINER))
    spec = pod.spec
    regular = tuple(_defaulted(each, earlier, limits, "container") for each in spec.containers)
    first = tuple(_defaulted(each, earlier, limits, "init container") for each in spec.init_containers)
    if (regular, first) == (spec.containers, spec.init_containers):
        return pod
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(spec, containers=regular, init_containers=first)
    )


def refusal(pod: Pod, objects: ClusterObjects) -> str:
    """Why the API server would refuse to create this pod again, as a sentence; "" if it would not."""
    for each in ranges_of(pod.namespace, objects):
        for limit in each.spec.limits:
            fault = next(_faults(pod, limit), "")
            if fault:
                return f"LimitRange {each.metadata.namespace}/{each.metadata.name} would refuse it: {fault}"
    return ""


def _set_earlier(said: str) -> frozenset[tuple[str, str, str, str]]:
    """What an annotation names: list and name of the container, field and resource."""
    found = set()
    for part in said.removeprefix(_PREFIX).split("; "):
        match = _SET.fullmatch(part)
        if match is not None:
            for name in match["names"].split(", "):
                found.add((match["list"], match["of"], match["field"], name))
    return frozenset(found)


def limits_of(ranges: Iterable[LimitRange], kind: str) -> Iterator[Limit]:
    """What LimitRanges say of a type, such as ``Container``."""
    return (limit for each in ranges for limit in each.spec.limits if limit.type == kind)


def _defaulted(
    container: Container, earlier: frozenset[tuple[str, str, str, str]], limits: list[Limit], kind: str
) -> Container:
    before = container.resources

    def now(field: str, stated: Quantities, defaults: list[Quantities]) -> dict[str, QuantityValue]:
        own = {
            name: amount
            for name, amount in stated.items()
            if (kind, container.name, field, name) not in earlier
        }
        for default in defaults:
            own |= {name: amount for name, amount in default.items() if name not in own}
        return own

    after = ResourceRequirements(
        requests=now("request", before.requests, [each.default_request for each in limits]),
        limits=now("limit", before.limits, [each.default for each in limits]),
    )
    return container if after == before else msgspec.structs.replace(container, resources=after)


def _faults(pod: Pod, limit: Limit) -> Iterator[str]:
    spec = pod.spec
    if limit.type == CONTAINER:
        for container in (*spec.init_containers, *spec.containers):
            for fault in _faults_of(limit, container.resources.requests, container.resources.limits):
                yield f"{fault} (container {container.name})"
    elif limit.type == _POD:
        yield from _faults_of(limit, _total(pod, "requests"), _total(pod, "limits"))


def _faults_of(
    limit: Limit, requests: Mapping[str, QuantityValue], limits: Mapping[str, QuantityValue]
) -> Iterator[str]:
    for name, least in sorted(limit.min.items()):
        head = f"minimum {name} usage per {limit.type} is {least}"
        if name not in requests:
            yield f"{head}, and no request is specified"
        elif _amount(requests[name]) < _amount(least):
            yield f"{head}, but request is {requests[name]}"
    for name, most in sorted(limit.max.items()):
        head = f"maximum {name} usage per {limit.type} is {most}"
        if name not in limits:
            yield f"{head}, and no limit is specified"
        elif _amount(limits[name]) > _amount(most):
            yield f"{head}, but limit is {limits[name]}"
    for name, ratio in sorted(limit.max_limit_request_ratio.items()):
        head = f"{name} max limit to request ratio per {limit.type} is {ratio}"
        request, most = _amount(requests.get(name, 0)), _amount(limits.get(name, 0))
        if not request or not most:
            yield f"{head}, but {'limit' if request else 'request'} is not specified"
        elif most * BILLION > _amount(ratio) * request:
            yield f"{head}, but provided ratio is {most / request:g}"


def _total(pod: Pod, field: str) -> dict[str, QuantityValue]:
    """What the containers of the pod have together while most of them run; as quantities."""
    regular: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        amounts = _amounts(container, field)
        if container.is_sidecar:
            _add(regular, amounts)
            need = regular
        else:
            need = dict(regular)
            _add(need, amounts)
        for name, amount in need.items():
            peak[name] = max(peak.get(name, 0), amount)
    for container in pod.spec.containers:
        _add(regular, _amounts(container, field))
    whole = {name: max(amount, peak.get(name, 0)) for name, amount in {**peak, **regular}.items()}
    return {name: _written(amount) for name, amount in whole.items()}


def _amounts(container: Container, field: str) -> dict[str, int]:
    stated: Quantities = getattr(container.resources, field)
    return {name: _amount(amount) for name, amount in stated.items()}


def _add(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _amount(quantity: QuantityValue) -> int:
    return nanos(readable(quantity))


def _written(billionths: int) -> str:
    return f"{billionths // 10**6}m" if billionths % BILLION else str(billionths // BILLION)
