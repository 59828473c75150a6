"""What a pod takes: its effective requests, in the four variants that decisions use.

Formula, per resource::

    regular  = sum of the containers' requests and of the sidecars'
    need[i]  = requests of init container i + those of the sidecars started before it
    total    = max(regular, max over i of need[i]), replaced by the pod-level request where there is one,
               + overhead

Units: ``cpu`` in milli-CPU, everything else in whole units; rounded up once, after the exact sum.
Edges: a resource that is neither cpu, memory, ephemeral-storage nor a scalar is dropped.
Source: kube-scheduler v1.36, ``component-helpers/resource/helpers.go`` and ``framework/types.go``; KEPs 753
(sidecars), 1287 (resize in place), 2837 (pod-level resources).
"""

import re
from collections.abc import Mapping

from plimsoll.model.pod import Container, ContainerStatus, Pod, ResourceRequirements
from plimsoll.model.quantity import QuantityValue, nanos, scaled
from plimsoll.model.selectors import is_label_key

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_CPU_MILLI = 100
"""Scoring counts a container that names no cpu as this much."""
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""Scoring counts a container that names no memory as this much."""

_NATIVE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
_LEAST = {CPU: DEFAULT_CPU_MILLI * 10**6, MEMORY: DEFAULT_MEMORY_BYTES * 10**9}
_EXTENDED_NAME = re.compile(r"[^/]+/[^/]+")

Nanos = dict[str, int]


def is_extended(name: str) -> bool:
    """Whether the name is an extended resource's: ``domain/name`` outside ``kubernetes.io``."""
    if "kubernetes.io/" in name or name.startswith("requests.") or not _EXTENDED_NAME.fullmatch(name):
        return False
    return is_label_key(f"requests.{name}")


def is_scalar(name: str) -> bool:
    """Whether the scheduler counts the resource although it is none of the native three."""
    return (
        name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or is_extended(name)
    )


def to_integer(name: str, quantity: QuantityValue) -> int:
    """A quantity of the resource in its unit: milli for cpu, whole units otherwise.

    Raises:
        QuantityError: the text is no quantity.
    """
    return scaled(nanos(quantity), 10**6 if name == CPU else 10**9)


def incoming(pod: Pod) -> dict[str, int]:
    """Requests of a pod to be placed, from its spec alone.

    Raises:
        QuantityError: a quantity cannot be read.
    """
    return _integers(_total(pod))


def exact(pod: Pod) -> Nanos:
    """Requests from the spec alone, in billionths, of every resource that is named; sums stay exact.

    Raises:
        QuantityError: a quantity cannot be read.
    """
    return _total(pod)


def existing(pod: Pod) -> dict[str, int]:
    """Requests of a pod on a node: during a resize in place the larger of wanted and granted.

    Raises:
        QuantityError: a quantity cannot be read.
    """
    return _integers(_total(pod, observed=True))


def nonzero_existing(pod: Pod) -> dict[str, int]:
    """Cpu and memory of a pod on a node, with the defaults for containers that name none.

    With pod-level requests, the default of a resource applies only if nothing at all names it.

    Raises:
        QuantityError: a quantity cannot be read.
    """
    least = dict(_LEAST)
    if _pod_level(pod.spec.resources):
        named = _total(pod, observed=True)
        least = {name: value for name, value in least.items() if name not in named}
    total = _integers(_total(pod, observed=True, least=least))
    return {name: total.get(name, 0) for name in (CPU, MEMORY)}


def fit_score(pod: Pod) -> dict[str, int]:
    """Requests of a pod to be placed as NodeResourcesFit scores it: with defaults, pod level ignored.

    Raises:
        QuantityError: a quantity cannot be read.
    """
    return _integers(_total(pod, least=_LEAST, pod_level=False))


def _integers(total: Nanos) -> dict[str, int]:
    return {
        name: scaled(value, 10**6 if name == CPU else 10**9)
        for name, value in total.items()
        if name in _NATIVE or is_scalar(name)
    }


def _total(
    pod: Pod, *, observed: bool = False, least: Mapping[str, int] | None = None, pod_level: bool = True
) -> Nanos:
    statuses: dict[str, ContainerStatus] = {}
    infeasible = False
    if observed and (pod.status.container_statuses or pod.status.init_container_statuses):
        statuses = {
            status.name: status
            for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
            if status.resources is not None
        }
    if observed and (pod.status.conditions or pod.status.resources is not None):
        condition = pod.condition("PodResizePending")
        infeasible = condition is not None and condition.reason == "Infeasible"

    def requests(container: Container, *, resizable: bool) -> Nanos:
        taken = _nanos(container.resources.requests)
        status = statuses.get(container.name) if resizable else None
        if status is not None and status.resources is not None:
            taken = {} if infeasible else taken
            _raise_to(taken, _nanos(status.resources.requests))
            _raise_to(taken, _nanos(status.allocated_resources))
        for name, value in (least or {}).items():
            taken.setdefault(name, value)
        return taken

    total: Nanos = {}
    for container in pod.spec.containers:
        _add(total, requests(container, resizable=True))
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in pod.spec.init_containers:
        taken = requests(container, resizable=container.is_sidecar)
        if container.is_sidecar:
            _add(total, taken)
            _add(sidecars, taken)
            taken = sidecars
        else:
            _add(taken, sidecars)
        _raise_to(peak, taken)
    _raise_to(total, peak)

    if pod_level and _pod_level(pod.spec.resources):
        total.update(_pod_level_requests(pod, observed=observed, infeasible=infeasible))
    _add(total, _nanos(pod.spec.overhead))
    return total


def _pod_level(resources: ResourceRequirements | None) -> bool:
    return resources is not None and any(_is_pod_level(name) for name in resources.requests)


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _pod_level_requests(pod: Pod, *, observed: bool, infeasible: bool) -> Nanos:
    """The pod-level requests of the resources that the spec names there; the status adds no others."""
    wanted = _nanos(pod.spec.resources.requests if pod.spec.resources else {})
    taken = wanted
    if observed and pod.status.resources is not None:
        taken = {} if infeasible else dict(wanted)
        _raise_to(taken, _nanos(pod.status.resources.requests))
        _raise_to(taken, _nanos(pod.status.allocated_resources))
    return {name: taken.get(name, 0) for name in wanted if _is_pod_level(name)}


def _nanos(quantities: Mapping[str, QuantityValue]) -> Nanos:
    return {name: nanos(quantity) for name, quantity in quantities.items()}


def _add(total: Nanos, more: Nanos) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: Nanos, floor: Nanos) -> None:
    for name, value in floor.items():
        total[name] = max(total.get(name, value), value)
