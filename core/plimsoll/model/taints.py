"""Decides which taints a toleration covers and which nodes our own taints close.

Source: Kubernetes v1.36, ``core/v1/toleration.go``. The numeric operators ``Lt`` and ``Gt`` of tolerations
are behind a feature gate that is off in the scheduler, so they tolerate nothing unless ``numeric`` is set.
"""

from collections.abc import Iterable

from plimsoll.model.kinds.node import Node, Taint
from plimsoll.model.kinds.pod import Toleration
from plimsoll.model.kinds.resource_slice import DeviceTaint
from plimsoll.model.selectors import int64

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
HARD_EFFECTS = frozenset((NO_SCHEDULE, NO_EXECUTE))
"""Effects that keep a new pod away."""

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What ``spec.unschedulable`` of a node amounts to."""


def tolerates(toleration: Toleration, taint: Taint | DeviceTaint, *, numeric: bool = False) -> bool:
    """Whether the toleration covers the taint of a node or device.

    An empty key or effect covers every key or effect. The operators ``Gt`` and ``Lt`` count only where
    ``numeric`` is true (descheduler's rule).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt" if numeric:
            bound, actual = _number(toleration.value), _number(taint.value)
            if bound is None or actual is None:
                return False
            return actual > bound if toleration.operator == "Gt" else actual < bound
        case _:
            return False


def _number(text: str) -> int | None:
    """The integer in the text; other spellings of it (``007``, ``+7``) do not count."""
    number = int64(text)
    return number if str(number) == text else None


def untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    effects: frozenset[str] = HARD_EFFECTS,
    *,
    numeric: bool = False,
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers, or ``None``."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(tolerates(t, taint, numeric=numeric) for t in tolerations):
            return taint
    return None


#: Keys of our taints. Their effect is NoSchedule; the first one has PreferNoSchedule while a node waits.
CONSOLIDATING = "plimsoll.dev/consolidating"
UNHEALTHY = "plimsoll.dev/unhealthy"


def is_closed(node: Node) -> bool:
    """Whether the node has our taint of nodes that are emptied."""
    return _has(node, CONSOLIDATING)


def is_avoided(node: Node) -> bool:
    """Whether the node has our taint of nodes that are to be emptied later: new pods prefer others."""
    return any(map(says_later, node.spec.taints))


def says_later(taint: Taint) -> bool:
    """Whether the taint says that its node is to be emptied later; the pods that are there may stay."""
    return taint.key == CONSOLIDATING and taint.effect == PREFER_NO_SCHEDULE


def is_marked_unhealthy(node: Node) -> bool:
    """Whether the node has our taint of nodes that are unhealthy."""
    return _has(node, UNHEALTHY)


def _has(node: Node, key: str) -> bool:
    taints = node.spec.taints
    return bool(taints) and any(taint.key == key and taint.effect == NO_SCHEDULE for taint in taints)
