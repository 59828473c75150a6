"""SIGNALS is the table of what others write on pods, namespaces and nodes to steer disruption.

Each row names who defined the signal, what its owner does at it, and what Plimsoll does. The functions below
are the only readers. A value that cannot be read protects, and the sentence says so. Planner Upstream reads
none of the rows but our own, as descheduler does not.

Source: Karpenter 1.12 (``pkg/utils/pod/scheduling.go``, pull request 2874), cluster-autoscaler 1.36
(``utils/drain``, ``utils/taints``), CAST AI's Evictor, Koordinator 1.8, descheduler v0.36, kured 1.21, AWS
Node Termination Handler 1.25 (``pkg/node``), Kueue 0.14 (``pkg/controller/jobs/pod``), and the documentation
of AKS and GKE.
Longer than 400 lines because the table and its only readers are one subject.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.priority import PREFER_NO_EVICTION
from plimsoll.toolkit.descheduling.protections import duration


class Bearer(StrEnum):
    """The kind of object that has the signal."""

    POD = "pod"
    NAMESPACE = "namespace"
    NODE = "node"


class Form(StrEnum):
    """Where on the object it is."""

    ANNOTATION = "annotation"
    LABEL = "label"
    TAINT = "taint"


class Effect(StrEnum):
    """What Plimsoll does at it."""

    STAYS = "the pod is not moved"
    IN_PROGRESS = "the pod is not moved again; a move of ours follows what happens to it"
    CARRIED_OUT = "a 429 without a PodDisruptionBudget is the beginning of an eviction that others carry out"
    GOES_LAST = "the pod is moved after its equals"
    COST = "pods of a lower cost are moved first"
    LOCAL_VOLUMES = "the named volumes do not count as local storage"
    NOT_EMPTIED = "strategies that empty nodes leave the node unchanged"
    LEAVING = "its pods are left to the owner of the signal, and no pod is moved to the node"
    NO_TARGET = "no pod is moved to the node"
    CORDONED = "no pod is moved to the node; its pods may be moved, as a cordon alone evicts none"


class Reading(StrEnum):
    """The values that its owner reads."""

    TRUE = '"true" or "false"'
    FALSE = '"false" or "true"'
    TRUE_OR_DURATION = '"true", "false", or a duration from the start of the pod such as "30m"'
    NUMBER = "a whole number of 32 bits"
    NUMBER_OR_NEVER = "a whole number of 32 bits; 2147483647 is never"
    NAMES = "names of volumes, separated by commas"
    ANY = "any value"


class DisruptionSignal(Struct, frozen=True):
    """A row of the table.

    Attributes:
        owner: Who defined it.
        owner_does: What the owner does at it, in a clause.
        waives: What its other value means to us, in a clause; "" for nothing.
    """

    key: str
    form: Form
    bearer: Bearer
    owner: str
    reading: Reading
    effect: Effect
    owner_does: str
    waives: str = ""

    def says(self, value: str) -> bool | timedelta | None:
        """Whether the effect applies: always, for a time after the pod's start, or None if unreadable."""
        match self.reading:
            case Reading.ANY | Reading.NAMES:
                return True
            case Reading.TRUE | Reading.FALSE | Reading.TRUE_OR_DURATION if value in ("true", "false"):
                return (value == "true") is not (self.reading is Reading.FALSE)
            case Reading.TRUE_OR_DURATION:
                return _positive_duration(value)
            case Reading.NUMBER | Reading.NUMBER_OR_NEVER:
                number = _int32(value)
                return None if number is None else number == NEVER and self.reading is not Reading.NUMBER
        return None

    def unreadable(self, value: str) -> str:
        """The sentence about a value that cannot be read."""
        return f"{self.form} {self.key}: {value[:64]!r} cannot be read (allowed are {self.reading.value})"


#: Annotations with several meanings.
EVICT = "descheduler.alpha.kubernetes.io/evict"
OUR_EVICT = "plimsoll.dev/evict"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

EVICTION_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
REQUEST_EVICT_ONLY = "descheduler.alpha.kubernetes.io/request-evict-only"

#: A cost that means never.
NEVER = 2**31 - 1

_DESCHEDULER, _KARPENTER, _AUTOSCALER = "descheduler", "Karpenter", "cluster-autoscaler"
_CAST, _KOORDINATOR, _KURED = "CAST AI", "Koordinator", "kured"
_NTH, _AKS, _GKE, _KUEUE = "AWS Node Termination Handler", "AKS", "GKE", "Kueue"
_REMOVAL, _BETA = "autoscaling.cast.ai/removal-disabled", "beta.evictor.cast.ai/eviction-disabled"
_KEEPS_NODE = "does not remove the node of the pod"
_KEEPS = "does not remove the node"
_DRAINS = "evicts the pods of the node, and removes it"

_Row = DisruptionSignal

SIGNALS: tuple[DisruptionSignal, ...] = (
    _Row(OUR_EVICT, Form.ANNOTATION, Bearer.POD, "Plimsoll", Reading.FALSE, Effect.STAYS,
         "never evicts the pod, with any policy and planner"),
    _Row(OUR_EVICT, Form.ANNOTATION, Bearer.NAMESPACE, "Plimsoll", Reading.FALSE, Effect.STAYS,
         "never evicts pods of the namespace, with any policy and planner"),
    _Row(EVICT, Form.ANNOTATION, Bearer.POD, _DESCHEDULER, Reading.FALSE, Effect.STAYS,
         "evicts the pod in spite of its protections, whatever the value",
         '"true" waives all protections but those of mirror, static and terminating pods'),
    _Row(PREFER_NO_EVICTION, Form.ANNOTATION, Bearer.POD, _DESCHEDULER, Reading.ANY, Effect.GOES_LAST,
         "evicts the pod after its equals, or never with noEvictionPolicy Mandatory",
         "with noEvictionPolicy Mandatory the pod is not moved"),
    _Row(EVICTION_IN_PROGRESS, Form.ANNOTATION, Bearer.POD, f"{_DESCHEDULER} (KubeVirt sets it)",
         Reading.ANY, Effect.IN_PROGRESS, "waits for the component that migrates the pod, and sends nothing"),
    _Row(REQUEST_EVICT_ONLY, Form.ANNOTATION, Bearer.POD, f"{_DESCHEDULER} (KubeVirt sets it)",
         Reading.ANY, Effect.CARRIED_OUT, "takes the answer 429 as the beginning of a migration"),
    _Row("karpenter.sh/do-not-disrupt", Form.ANNOTATION, Bearer.POD, _KARPENTER, Reading.TRUE_OR_DURATION,
         Effect.STAYS, f"{_KEEPS_NODE}, for that long after the pod's start; ignores other values"),
    _Row("karpenter.sh/do-not-evict", Form.ANNOTATION, Bearer.POD, _KARPENTER, Reading.TRUE, Effect.STAYS,
         f"{_KEEPS_NODE} (until version 0.32)"),
    _Row("karpenter.sh/disruption-cost", Form.ANNOTATION, Bearer.POD, _KARPENTER, Reading.NUMBER,
         Effect.COST, "removes nodes of cheap pods first (alpha); used in place of pod-deletion-cost"),
    _Row(SAFE_TO_EVICT, Form.ANNOTATION, Bearer.POD, _AUTOSCALER, Reading.FALSE, Effect.STAYS,
         f'{_KEEPS_NODE}; "true" lets it go in spite of local storage or a missing owner',
         '"true" waives PodsWithLocalStorage; a pod without an owner stays, as nothing would replace it'),
    _Row(LOCAL_VOLUMES, Form.ANNOTATION, Bearer.POD, _AUTOSCALER, Reading.NAMES, Effect.LOCAL_VOLUMES,
         "lets the pod go in spite of these volumes"),
    _Row(_REMOVAL, Form.ANNOTATION, Bearer.POD, _CAST, Reading.TRUE, Effect.STAYS, _KEEPS_NODE),
    _Row(_REMOVAL, Form.LABEL, Bearer.POD, _CAST, Reading.TRUE, Effect.STAYS, _KEEPS_NODE),
    _Row(_BETA, Form.ANNOTATION, Bearer.POD, _CAST, Reading.TRUE, Effect.STAYS, _KEEPS_NODE),
    _Row("scheduling.koordinator.sh/eviction-cost", Form.ANNOTATION, Bearer.POD, _KOORDINATOR,
         Reading.NUMBER_OR_NEVER, Effect.STAYS, "evicts cheap pods first, and those of 2147483647 never",
         "any other number is a cost: pods of a lower one are moved first"),
    _Row("controller.kubernetes.io/pod-deletion-cost", Form.ANNOTATION, Bearer.POD, "Kubernetes",
         Reading.NUMBER, Effect.COST, "deletes cheap pods first when a ReplicaSet shrinks"),
    _Row("kueue.x-k8s.io/managed", Form.LABEL, Bearer.POD, _KUEUE, Reading.TRUE, Effect.STAYS,
         "holds back what replaces the pod until its queue has quota for it"),
    _Row("cluster-autoscaler.kubernetes.io/scale-down-disabled", Form.ANNOTATION, Bearer.NODE,
         _AUTOSCALER, Reading.TRUE, Effect.NOT_EMPTIED, _KEEPS),
    _Row("karpenter.sh/do-not-disrupt", Form.ANNOTATION, Bearer.NODE, _KARPENTER, Reading.TRUE,
         Effect.NOT_EMPTIED, _KEEPS),
    _Row("karpenter.sh/do-not-consolidate", Form.ANNOTATION, Bearer.NODE, _KARPENTER, Reading.TRUE,
         Effect.NOT_EMPTIED, f"{_KEEPS} (until version 0.32)"),
    _Row(_REMOVAL, Form.ANNOTATION, Bearer.NODE, _CAST, Reading.TRUE, Effect.NOT_EMPTIED, _KEEPS),
    _Row(_REMOVAL, Form.LABEL, Bearer.NODE, _CAST, Reading.TRUE, Effect.NOT_EMPTIED, _KEEPS),
    _Row(_BETA, Form.ANNOTATION, Bearer.NODE, _CAST, Reading.TRUE, Effect.NOT_EMPTIED, _KEEPS),
    _Row(_BETA, Form.LABEL, Bearer.NODE, _CAST, Reading.TRUE, Effect.NOT_EMPTIED, _KEEPS),
    _Row("ToBeDeletedByClusterAutoscaler", Form.TAINT, Bearer.NODE, _AUTOSCALER, Reading.ANY,
         Effect.LEAVING, _DRAINS),
    _Row("DeletionCandidateOfClusterAutoscaler", Form.TAINT, Bearer.NODE, _AUTOSCALER, Reading.ANY,
         Effect.NO_TARGET, "removes the node if it stays unneeded"),
    _Row("karpenter.sh/disrupted", Form.TAINT, Bearer.NODE, _KARPENTER, Reading.ANY, Effect.LEAVING,
         _DRAINS),
    _Row("karpenter.sh/disruption", Form.TAINT, Bearer.NODE, _KARPENTER, Reading.ANY, Effect.LEAVING,
         f"{_DRAINS} (until version 0.37)"),
    _Row("aws-node-termination-handler/spot-itn", Form.TAINT, Bearer.NODE, _NTH, Reading.ANY,
         Effect.LEAVING, "evicts the pods of a spot instance that is about to be interrupted"),
    _Row("aws-node-termination-handler/scheduled-maintenance", Form.TAINT, Bearer.NODE, _NTH, Reading.ANY,
         Effect.LEAVING, "evicts the pods of the node before the maintenance of its instance"),
    _Row("aws-node-termination-handler/asg-lifecycle-termination", Form.TAINT, Bearer.NODE, _NTH, Reading.ANY,
         Effect.LEAVING, "evicts the pods of a node that its Auto Scaling group removes"),
    _Row("aws-node-termination-handler/rebalance-recommendation", Form.TAINT, Bearer.NODE, _NTH, Reading.ANY,
         Effect.NO_TARGET, "places no pod on a spot instance that may be interrupted"),
    _Row("cloud.google.com/impending-node-termination", Form.TAINT, Bearer.NODE, _GKE, Reading.ANY,
         Effect.LEAVING, "ends the pods of a node that is about to be preempted or maintained"),
    _Row("remediator.kubernetes.azure.com/unschedulable", Form.TAINT, Bearer.NODE, _AKS, Reading.ANY,
         Effect.LEAVING, "evicts the pods of a node that is repaired, preempted or redeployed"),
    _Row("weave.works/kured-reboot-in-progress", Form.ANNOTATION, Bearer.NODE, _KURED, Reading.ANY,
         Effect.LEAVING, "evicts the pods of the node, and reboots it"),
    _Row("node.kubernetes.io/unschedulable", Form.TAINT, Bearer.NODE, "Kubernetes (kubectl drain, cordon)",
         Reading.ANY, Effect.CORDONED, "places no pod on the node; kubectl drain then evicts its pods"),
)  # fmt: skip
"""What is read, row by row."""


OUR_PREFIX = "plimsoll.dev/"
OUR_KEYS = frozenset(
    {
        "approved", "bundle", "consolidating", "evict", "from-node", "in-work", "operator", "owner-kind",
        "owner-name", "pause-reason", "paused-by", "pod-group", "policy", "preferred-topology",
        "price-per-hour", "prometheus-url", "queue", "replay-seconds", "required-topology", "run", "stop",
        "strategy", "surged", "unhealthy", "wanted-gone",
    }
)  # fmt: skip
"""Our keys of annotations, labels and taints, without the prefix: docs/reference/keys.md describes them."""


def _rows(bearer: Bearer, form: Form, *effects: Effect) -> tuple[DisruptionSignal, ...]:
    return tuple(
        each for each in SIGNALS if (each.bearer, each.form) == (bearer, form) and each.effect in effects
    )


_POD_ANNOTATIONS = _rows(Bearer.POD, Form.ANNOTATION, Effect.STAYS)
_POD_LABELS = _rows(Bearer.POD, Form.LABEL, Effect.STAYS)
_OWN = {each.bearer: each for each in SIGNALS if each.key == OUR_EVICT}
_OTHERS = tuple(each for each in _POD_ANNOTATIONS if each.key != OUR_EVICT)
_OTHER_KEYS, _LABEL_KEYS = (frozenset(each.key for each in rows) for rows in (_OTHERS, _POD_LABELS))
_COSTS = tuple(
    each
    for each in SIGNALS
    if each.bearer is Bearer.POD and each.reading in (Reading.NUMBER, Reading.NUMBER_OR_NEVER)
)
_NODE_ANNOTATIONS = _rows(Bearer.NODE, Form.ANNOTATION, Effect.NOT_EMPTIED)
_NODE_LABELS = _rows(Bearer.NODE, Form.LABEL, Effect.NOT_EMPTIED)
_MARKS = _rows(Bearer.NODE, Form.ANNOTATION, Effect.LEAVING, Effect.NO_TARGET)
_TAINTS = {each.key: each for each in _rows(Bearer.NODE, Form.TAINT, Effect.LEAVING, Effect.NO_TARGET)}


# -- pods ------------------------------------------------------------------------------------------------


def never_evicted(annotations: Mapping[str, str], namespace: str = "") -> Refusal | None:
    """Our annotation that forbids evictions, on a pod, or on the namespace of that name."""
    value = annotations.get(OUR_EVICT)
    if value is None:
        return None
    signal = _OWN[Bearer.NAMESPACE if namespace else Bearer.POD]
    said = signal.says(value)
    if said is None:
        whose = f"namespace {namespace}" if namespace else "the pod"
        return Refusal(
            "NeverEvict", f"{signal.unreadable(value)}, so {whose} counts as protected from evictions"
        )
    if not said:
        return None
    if namespace:
        return Refusal(
            "NeverEvict", f"annotation {OUR_EVICT}: false of namespace {namespace} forbids its evictions"
        )
    return Refusal("NeverEvict", f"the pod's annotation {OUR_EVICT}: false forbids its eviction")


def in_progress(pod: Pod) -> Refusal | None:
    """Why a pod is not evicted that another component is about to make leave."""
    if EVICTION_IN_PROGRESS not in pod.metadata.annotations:
        return None
    return Refusal(
        "EvictionInProgress",
        f"the pod's annotation {EVICTION_IN_PROGRESS} says that another component carries out an eviction",
    )


def opted_out(pod: Pod, now: datetime) -> Refusal | None:
    """The first signal of others that forbids the pod's eviction at this time."""
    annotations, labels = pod.metadata.annotations, pod.metadata.labels
    if _OTHER_KEYS.isdisjoint(annotations) and _LABEL_KEYS.isdisjoint(labels):
        return None  # almost all pods
    for signal in _OTHERS:
        value = annotations.get(signal.key)
        refusal = None if value is None else _refusal(signal, value, pod, now)
        if refusal is not None:
            return refusal
    for signal in _POD_LABELS:
        value = labels.get(signal.key)
        refusal = None if value is None else _refusal(signal, value, pod, now)
        if refusal is not None:
            return refusal
    return None


def _refusal(signal: DisruptionSignal, value: str, pod: Pod, now: datetime) -> Refusal | None:
    said, form = signal.says(value), signal.form
    if said is None:
        return Refusal("OptedOut", f"{signal.unreadable(value)}, so the pod counts as protected")
    if isinstance(said, timedelta):
        started = pod.status.start_time
        if started is None:
            return Refusal(
                "OptedOut",
                f"the pod's {form} {signal.key}: {value} forbids its eviction from its start on, and it has"
                " not started",
            )
        if now - started >= said:
            return None
        until = (started + said).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Refusal(
            "OptedOut", f"the pod's {form} {signal.key}: {value} forbids its eviction until {until}"
        )
    if not said:
        return None
    reason = "NeverEvict" if signal.key == EVICT else "OptedOut"
    return Refusal(reason, f"the pod's {form} {signal.key}: {value} forbids its eviction")


def has_local_storage(pod: Pod, *, heeds_waivers: bool = True) -> bool:
    """Whether the pod has volumes on its node whose content would be lost (hostPath or emptyDir).

    With ``heeds_waivers``, volumes do not count that annotations say are safe to lose.
    """
    local = [
        each.name for each in pod.spec.volumes if each.host_path is not None or each.empty_dir is not None
    ]
    annotations = pod.metadata.annotations
    if not local or not annotations or not heeds_waivers:
        return bool(local)
    return annotations.get(SAFE_TO_EVICT) != "true" and not set(local) <= set(_named_volumes(annotations))


def _named_volumes(annotations: Mapping[str, str]) -> list[str]:
    return annotations[LOCAL_VOLUMES].split(",") if LOCAL_VOLUMES in annotations else []


def cost(annotations: Mapping[str, str]) -> int:
    """What a pod's eviction costs by the first annotation that says it: 0 without one.

    A cost that cannot be read is above all others.
    """
    for signal in _COSTS if annotations else ():
        value = annotations.get(signal.key)
        if value is not None:
            number = _int32(value)
            return NEVER + 1 if number is None else number
    return 0


def unreadable_cost(annotations: Mapping[str, str]) -> str:
    """The sentence about a cost that cannot be read, "" for all others."""
    for signal in _COSTS if annotations else ():
        value = annotations.get(signal.key)
        if value is not None:
            known = _int32(value) is not None or signal.effect is not Effect.COST
            return "" if known else f"{signal.unreadable(value)}, so the pod is moved after its equals"
    return ""


# -- nodes -----------------------------------------------------------------------------------------------


def not_emptied(node: Node) -> str:
    """Why strategies that empty nodes leave this one unchanged, as a clause; "" if they do not."""
    annotations, labels = node.metadata.annotations, node.metadata.labels
    for rows, values in ((_NODE_ANNOTATIONS, annotations), (_NODE_LABELS, labels)):
        for signal in rows:
            value = values.get(signal.key)
            said = False if value is None else signal.says(value)
            if value is None or said is False:
                continue
            if said is None:
                return f"{signal.unreadable(value)}, so it counts as set"
            return f"{signal.form} {signal.key}: {value} of {signal.owner}"
    return ""


def removal(node: Node) -> str:
    """Why no pod should be moved to the node, as a clause; "" if nothing removes it."""
    signal = _mark(node)
    return "" if signal is None else f"has the {signal.form} {signal.key}: {_who(signal)}"


def removing(node: Node) -> str:
    """Who is about to remove the node; "" without a mark."""
    signal = _mark(node)
    return "" if signal is None else signal.owner


def leaving(node: Node) -> Refusal | None:
    """Why the pods of the node are left alone: another owner is about to evict them."""
    signal = _mark(node)
    if signal is None or signal.effect is not Effect.LEAVING:
        return None
    return Refusal(
        "NodeLeaving", f"node {node.name} has the {signal.form} {signal.key}: {_who(signal)} by itself"
    )


def _mark(node: Node) -> DisruptionSignal | None:
    found = [_TAINTS[taint.key] for taint in node.spec.taints if taint.key in _TAINTS]
    found += [each for each in _MARKS if each.key in node.metadata.annotations]
    return min(found, key=lambda each: each.effect is not Effect.LEAVING, default=None)


def _who(signal: DisruptionSignal) -> str:
    return f"{signal.owner} {signal.owner_does}"


# -- for people ------------------------------------------------------------------------------------------


def _positive_duration(text: str) -> timedelta | None:
    try:
        found = duration(text.removeprefix("+"))
    except ValueError:
        return None
    return found if found > timedelta(0) else None


def _int32(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if -(2**31) <= number < 2**31 and str(number) == text else None
