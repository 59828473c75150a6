"""Effective requests of a pod, in the four variants that decisions use.

Formula, per resource::

    regular  = sum of the containers' requests and of the sidecars'
    need[i]  = requests of init container i + those of the sidecars started before it
    total    = max(regular, max over i of need[i]), replaced by the pod-level request where there is one,
               + overhead

Units: ``cpu`` in milli-CPU, everything else in whole units; rounded up once, after the exact sum.
Edges: a resource that is neither cpu, memory, ephemeral-storage nor a scalar is dropped, and so is a scalar
of which nothing is requested: it fits everywhere. A total that does not fit 64 bits is computed again as
upstream computes it (:class:`~plimsoll.model.quantity.Amount`); an invalid quantity counts as 0, for that
amount alone.
Source: kube-scheduler v1.36, ``component-helpers/resource/helpers.go`` and ``framework/types.go``; KEPs 753
(sidecars), 1287 (resize in place), 2837 (pod-level resources).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from plimsoll.model.kinds.pod import Container, ContainerStatus, Pod, ResourceRequirements
from plimsoll.model.quantity import (
    BILLION,
    MAX_INT64,
    Amount,
    QuantityError,
    QuantityValue,
    in_unit,
    nanos,
    readable,
    scaled,
)
from plimsoll.model.read_only_dict import ReadOnlyDict

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"

#: Maximum of amounts, and of their sums: larger values count as this much and never wrap around.
LARGEST_AMOUNT = 2**63 - 1

DEFAULT_CPU_MILLI = 100
"""Scoring counts a container that names no cpu as this much."""
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""Scoring counts a container that names no memory as this much."""

DEFERRED, INFEASIBLE = "Deferred", "Infeasible"
"""Why a kubelet has not granted a resize in place: the node lacks room now, or can never have it."""

_NATIVE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
_LEAST = {CPU: DEFAULT_CPU_MILLI * 10**6, MEMORY: DEFAULT_MEMORY_BYTES * 10**9}
#: The domain and the name of an extended resource; each character is read once, for there may be 75,000.
_EXTENDED_NAME = re.compile(
    r"([a-z0-9]++(?:-++[a-z0-9]++)*+(?:\.[a-z0-9]++(?:-++[a-z0-9]++)*+)*+)"
    r"/[A-Za-z0-9]++(?:[-_.]++[A-Za-z0-9]++)*+"
)
_LONGEST_DOMAIN, _LONGEST_NAME = 253 - len("requests."), 63

#: Resources of one container from which on each different quantity is read once.
MANY = 16

Nanos = dict[str, int]
Number = TypeVar("Number", int, Amount)
Read = Callable[[QuantityValue], Number]


def bounded(requests: Mapping[str, int]) -> ReadOnlyDict[str, int]:
    """Each amount within 0..LARGEST_AMOUNT."""
    amounts = requests.values()
    if min(amounts, default=0) >= 0 and max(amounts, default=0) <= LARGEST_AMOUNT:
        return ReadOnlyDict(requests)
    return ReadOnlyDict({name: max(0, min(amount, LARGEST_AMOUNT)) for name, amount in requests.items()})


def is_extended(name: str) -> bool:
    """Whether the name is an extended resource's: ``domain/name`` outside ``kubernetes.io``."""
    if "kubernetes.io/" in name or name.startswith("requests."):
        return False
    found = _EXTENDED_NAME.fullmatch(name)
    if found is None:
        return False
    domain = found.end(1)
    return domain <= _LONGEST_DOMAIN and len(name) - domain - 1 <= _LONGEST_NAME


def is_scalar(name: str) -> bool:
    """Whether the scheduler counts the resource although it is not one of the native three."""
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
    return in_unit(quantity, _unit(name))


def incoming(pod: Pod) -> dict[str, int]:
    """Requests of a pod to be placed, from its spec alone."""
    return _integers(pod)


def names_all(pod: Pod) -> bool:
    """Whether every container names cpu and memory, and the pod as a whole nothing: no default applies."""
    spec = pod.spec
    if _pod_level(spec.resources):
        return False
    for container in (*spec.containers, *spec.init_containers):
        requests = container.resources.requests
        if CPU not in requests or MEMORY not in requests:
            return False
    return True


def exact(pod: Pod) -> Nanos:
    """Requests from the spec alone, in billionths, of every resource that is named; sums stay exact."""
    return _total(pod, _read_nanos)


def existing(pod: Pod) -> dict[str, int]:
    """Requests of a pod on a node: during a resize in place the larger of wanted and granted."""
    return _integers(pod, observed=True)


def granted(pod: Pod) -> dict[str, int]:
    """What a pod on a node takes while its resize in place waits: what was granted to it."""
    return _integers(pod, observed=True, waits=True)


def pending_resize(pod: Pod) -> str:
    """Why a resize in place waits: ``Deferred`` or ``Infeasible``; "" if none does."""
    condition = pod.condition("PodResizePending")
    return "" if condition is None else condition.reason


def grants_the_spec(pod: Pod) -> bool:
    """Whether the status grants nothing, or as much as the spec; then the spec says what it takes."""
    status = pod.status
    if status.resources is not None or status.allocated_resources:
        return False
    for granted in (*status.container_statuses, *status.init_container_statuses):
        if granted.resources is None:
            continue
        allocated = granted.allocated_resources or granted.resources.requests
        for asked in (*pod.spec.containers, *pod.spec.init_containers):
            if asked.name == granted.name and not (
                asked.resources.requests == granted.resources.requests == allocated
            ):
                return False
    return True


def nonzero_existing(pod: Pod) -> dict[str, int]:
    """Cpu and memory of a pod on a node, with the defaults for containers that name none.

    With pod-level requests, the default of a resource applies only if nothing at all names it.
    """
    least = dict(_LEAST)
    if _pod_level(pod.spec.resources):
        named = _total(pod, _read_nanos, observed=True)
        least = {name: value for name, value in least.items() if name not in named}
    total = _integers(pod, observed=True, least=least, of=lambda _: False)
    return {name: total.get(name, 0) for name in (CPU, MEMORY)}


def fit_score(pod: Pod, of: Callable[[str], bool] = is_scalar) -> dict[str, int]:
    """Requests of a pod to be placed as NodeResourcesFit scores it: with defaults, pod level ignored.

    Args:
        pod: The pod.
        of: Tells which names of other than native resources count.
    """
    return _integers(pod, least=_LEAST, pod_level=False, of=of)


def unreadable(pod: Pod) -> Iterator[str]:
    """A sentence for each amount of a pod that is not a quantity and counts as 0."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        yield from unreadable_amounts(f"container {container.name}", container.resources.requests)
    yield from unreadable_amounts("the pod", pod.spec.resources.requests if pod.spec.resources else {})
    yield from unreadable_amounts("overhead", pod.spec.overhead)


def unreadable_amounts(where: str, quantities: Mapping[str, QuantityValue]) -> Iterator[str]:
    """A sentence for each resource whose amount is not a quantity."""
    for name, quantity in quantities.items():
        try:
            nanos(quantity)
        except QuantityError as exc:
            yield f"{name} of {where} counts as 0: {exc}"


def _unit(name: str) -> int:
    return 10**6 if name == CPU else BILLION


def _integers(
    pod: Pod,
    *,
    observed: bool = False,
    waits: bool = False,
    least: Mapping[str, int] | None = None,
    pod_level: bool = True,
    of: Callable[[str], bool] = is_scalar,
) -> dict[str, int]:
    """The total of the native resources, and of those ``of`` accepts, in the resources' units.

    An overflow is computed in upstream's way, if there is one.
    """
    total = _total(pod, _read_nanos, observed=observed, waits=waits, least=least, pod_level=pod_level)
    counted = {name: value for name, value in total.items() if name in _NATIVE or (value and of(name))}
    if max(counted.values(), default=0) <= MAX_INT64 * 10**6:
        return {name: scaled(value, 10**6 if name == CPU else BILLION) for name, value in counted.items()}
    floor = {name: Amount.of_nanos(value) for name, value in (least or {}).items()}
    wide = _total(pod, _read_amount, observed=observed, waits=waits, least=floor, pod_level=pod_level)
    return {name: wide[name].in_unit(_unit(name)) for name in counted}


def _read_nanos(quantity: QuantityValue) -> int:
    try:
        return nanos(quantity)
    except QuantityError:
        return 0


def _read_amount(quantity: QuantityValue) -> Amount:
    return Amount.of(readable(quantity))


def _total(
    pod: Pod,
    read: Read[Number],
    *,
    observed: bool = False,
    waits: bool = False,
    least: Mapping[str, Number] | None = None,
    pod_level: bool = True,
) -> dict[str, Number]:
    spec = pod.spec
    is_plain = not (observed or least or spec.init_containers or spec.overhead or spec.resources)
    if is_plain and len(spec.containers) == 1:  # most pods
        return _amounts(spec.containers[0].resources.requests, read)
    statuses: dict[str, ContainerStatus] = {}
    if observed and (pod.status.container_statuses or pod.status.init_container_statuses):
        statuses = {
            status.name: status
            for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
            if status.resources is not None
        }
    waits = waits or (observed and pending_resize(pod) == INFEASIBLE)

    def requests(container: Container, *, resizable: bool) -> dict[str, Number]:
        taken = _amounts(container.resources.requests, read)
        status = statuses.get(container.name) if resizable else None
        if status is not None and status.resources is not None:
            taken = {} if waits else taken
            _raise_to(taken, _amounts(status.resources.requests, read))
            _raise_to(taken, _amounts(status.allocated_resources, read))
        for name, value in (least or {}).items():
            taken.setdefault(name, value)
        return taken

    total: dict[str, Number] = {}
    for container in pod.spec.containers:
        _add(total, requests(container, resizable=True))
    sidecars: dict[str, Number] = {}
    peak: dict[str, Number] = {}
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

    if pod_level:
        total.update(_pod_level_requests(pod, read, observed=observed, waits=waits))
    _add(total, _amounts(pod.spec.overhead, read))
    return total


def _pod_level(resources: ResourceRequirements | None) -> bool:
    return resources is not None and any(_is_pod_level(name) for name in resources.requests)


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _pod_level_requests(pod: Pod, read: Read[Number], *, observed: bool, waits: bool) -> dict[str, Number]:
    """The pod-level requests of the resources that the spec names there; the status adds no others."""
    wanted = _amounts(pod.spec.resources.requests if pod.spec.resources else {}, read)
    taken = wanted
    if observed and pod.status.resources is not None:
        taken = {} if waits else dict(wanted)
        _raise_to(taken, _amounts(pod.status.resources.requests, read))
        _raise_to(taken, _amounts(pod.status.allocated_resources, read))
    return {name: taken[name] if name in taken else read(0) for name in wanted if _is_pod_level(name)}


def _amounts(quantities: Mapping[str, QuantityValue], read: Read[Number]) -> dict[str, Number]:
    if len(quantities) < MANY:
        return {name: read(quantity) for name, quantity in quantities.items()}
    known = {quantity: read(quantity) for quantity in set(quantities.values())}
    return {name: known[quantity] for name, quantity in quantities.items()}


def _add(total: dict[str, Number], more: Mapping[str, Number]) -> None:
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def _raise_to(total: dict[str, Number], floor: Mapping[str, Number]) -> None:
    for name, value in floor.items():
        standing = total.get(name)
        if standing is None:
            total[name] = value
        elif isinstance(standing, Amount):
            total[name] = standing.raised_to(value)
        elif value > standing:
            total[name] = value
