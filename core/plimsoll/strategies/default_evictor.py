"""DefaultEvictor: decide which pods may be evicted (not of DaemonSets, with local storage, or critical).

Formula, the first that applies::

    evict annotation > mandatory opt-out > mirror, static, terminating > priority > owners > volumes
    > claims > budgets > labels > replicas > age;  right before the eviction: node fit > namespace labels

The evict annotation admits, a mandatory opt-out protects.

Units: ``minPodAge`` is a duration such as 10m; replicas and priorities are counts.
Edges: any value of the evict annotation, even ``"false"``, admits a pod that every other check protects;
disabling SystemCriticalPods also removes the priority threshold; the minimum of replicas does not apply to
pods with two owners; a pod without start time is too young; if the ``nodeSelector`` cannot be parsed, no pod
fits any node.
Source: descheduler v0.36, ``pkg/framework/plugins/defaultevictor``.
Differs: only under the planners Proven and Optimal, which put safety first. The evict annotation admits a pod
if its value is ``"true"``, but never mirror, static or terminating pods; ``"false"`` forbids the pod's
eviction (reason ``NeverEvict``). The priority threshold applies independently of SystemCriticalPods. What
others write on pods and nodes is read (``docs/reference/signals.md``). Of several owners the controller
counts, or each if none is one. If ``minReplicas`` is 2 or more, the only ready pod of an owner stays, and so
do all while their controller is being deleted. The proof checks node fit; failed and succeeded pods need no
other node there.
"""

from datetime import timedelta
from typing import ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, StrictBool, StrictInt, StrictStr, model_validator

from plimsoll.framework import ClusterObjects, OwnerReference, PluginArgs, PodInfo
from plimsoll.framework.descheduling import (
    PREFER_NO_EVICTION,
    CannotJudgeError,
    Evictor,
    Refusal,
    StrategyContext,
    considered_nodes,
)
from plimsoll.framework.descheduling.pod_indexes import is_serving
from plimsoll.framework.selectors import (
    EVERYTHING,
    LabelSelector,
    Selector,
    SelectorError,
    compile_selector,
    parse_selector,
)
from plimsoll.toolkit.counted_words import counted
from plimsoll.toolkit.descheduling.disruption_signals import (
    EVICT,
    has_local_storage,
    in_progress,
    leaving,
    opted_out,
)
from plimsoll.toolkit.descheduling.node_fit import fits_any_other_node
from plimsoll.toolkit.descheduling.pod_scope import LabelSelectorArg
from plimsoll.toolkit.descheduling.protections import (
    DEFAULTS,
    EXTRAS,
    PodProtectionsArg,
    PriorityThresholdArg,
    duration,
    not_replaced,
)

SOURCE = "kubernetes.io/config.source"
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000


class DefaultEvictorArgs(PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a DeschedulerPolicy, or ``evictor`` in ours."""

    node_selector: StrictStr = Field(
        default="", description="Nodes that count as possible targets, as a label selector in text form."
    )
    label_selector: LabelSelectorArg | None = Field(
        default=None, description="Only pods whose labels match may be evicted."
    )
    namespace_label_selector: LabelSelectorArg | None = Field(
        default=None, description="Only pods of namespaces whose labels match may be evicted."
    )
    priority_threshold: PriorityThresholdArg | None = Field(
        default=None, description="Pods of this priority and above are never evicted."
    )
    node_fit: StrictBool = Field(
        default=False, description="Whether a pod must fit another node; the Proven planner always proves it."
    )
    min_replicas: StrictInt = Field(
        default=0, ge=0, description="Pods that an owner must have; 0 and 1 allow the last one."
    )
    min_pod_age: StrictStr | None = Field(default=None, description="A duration such as 10m or 1h30m.")
    no_eviction_policy: Literal["", "Preferred", "Mandatory"] = Field(
        default="", description="Whether pods annotated prefer-no-eviction go last or never."
    )
    pod_protections: PodProtectionsArg = Field(
        default=PodProtectionsArg.model_construct(), description="Kinds of pods that are never evicted."
    )
    evict_local_storage_pods: StrictBool = Field(
        default=False,
        description="Deprecated: disable the protection PodsWithLocalStorage in podProtections.",
    )
    evict_daemon_set_pods: StrictBool = Field(
        default=False, description="Deprecated: disable the protection DaemonSetPods in podProtections."
    )
    evict_system_critical_pods: StrictBool = Field(
        default=False, description="Deprecated: disable the protection SystemCriticalPods in podProtections."
    )
    evict_failed_bare_pods: StrictBool = Field(
        default=False, description="Deprecated: disable the protection FailedBarePods in podProtections."
    )
    ignore_pvc_pods: StrictBool = Field(
        default=False, description="Deprecated: enable the protection PodsWithPVC in podProtections."
    )
    ignore_pods_without_pdb: StrictBool = Field(
        default=False,
        alias="ignorePodsWithoutPDB",
        description="Deprecated: enable the protection PodsWithoutPDB in podProtections.",
    )

    _targets: Selector | None = PrivateAttr(default=EVERYTHING)
    _youngest: timedelta | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        threshold = self.priority_threshold
        if threshold is not None and threshold.value is not None and threshold.name:
            raise ValueError(
                "priority threshold misconfigured, only one of priorityThreshold fields can be set"
            )
        if threshold is not None and (threshold.value or 0) > SYSTEM_CRITICAL_PRIORITY:
            raise ValueError(f"priority threshold can't be greater than {SYSTEM_CRITICAL_PRIORITY}")
        self._check_protections()
        try:
            self._targets = parse_selector(self.node_selector)
        except SelectorError:
            self._targets = None
        if self.min_pod_age is not None:
            self._youngest = duration(self.min_pod_age)
        return self

    def _check_protections(self) -> None:
        given = self.pod_protections
        legacy = (
            self.evict_local_storage_pods
            or self.evict_daemon_set_pods
            or self.evict_system_critical_pods
            or self.evict_failed_bare_pods
            or self.ignore_pvc_pods
            or self.ignore_pods_without_pdb
        )
        if legacy and (given.default_disabled or given.extra_enabled):
            raise ValueError(
                "podProtections cannot be used together with the deprecated evict/ignore booleans"
            )
        for path, names, allowed in (
            ("defaultDisabled", given.default_disabled, DEFAULTS),
            ("extraEnabled", given.extra_enabled, EXTRAS),
        ):
            for name in names:
                if name not in allowed:
                    raise ValueError(
                        f'podProtections.{path}: "{name}" is not allowed; allowed are {", ".join(allowed)}'
                    )
            if len(set(names)) != len(names):
                raise ValueError(f"podProtections.{path}: a name occurs twice")
        if "PodsWithPVC" in given.extra_enabled and any(not name for name in self.protected_classes):
            raise ValueError("podProtections.config.PodsWithPVC: a protected storage class has no name")

    @property
    def targets(self) -> Selector | None:
        """Nodes that are possible targets; None if the selector is invalid."""
        return self._targets

    @property
    def youngest(self) -> timedelta | None:
        """The age below which pods are protected."""
        return self._youngest

    @property
    def protected_classes(self) -> tuple[str, ...]:
        """Storage classes to which PodsWithPVC is restricted; empty means all."""
        config = self.pod_protections.config
        if config is None or config.pods_with_pvc is None:
            return ()
        return tuple(each.name for each in config.pods_with_pvc.protected_storage_classes)

    @property
    def protections(self) -> frozenset[str]:
        """Names of the active protections: from the new lists if one is given, else from the old booleans."""
        given = self.pod_protections
        if given.default_disabled or given.extra_enabled:
            return (frozenset(DEFAULTS) - set(given.default_disabled)) | set(given.extra_enabled)
        off = {
            "PodsWithLocalStorage": self.evict_local_storage_pods,
            "DaemonSetPods": self.evict_daemon_set_pods,
            "SystemCriticalPods": self.evict_system_critical_pods,
            "FailedBarePods": self.evict_failed_bare_pods,
        }
        on = {"PodsWithPVC": self.ignore_pvc_pods, "PodsWithoutPDB": self.ignore_pods_without_pdb}
        return frozenset(
            [name for name in DEFAULTS if not off[name]] + [name for name, wanted in on.items() if wanted]
        )


class DefaultEvictor(Evictor):
    """Protects pods that must not be evicted."""

    name: ClassVar = "DefaultEvictor"
    args_model: ClassVar = DefaultEvictorArgs

    def __init__(self, args: DefaultEvictorArgs) -> None:
        self.args = args
        self._on = args.protections
        # Runs for every pod of a large cluster, so checks that the arguments disable are left out.
        self._youngest, self._min_replicas = args.youngest, args.min_replicas
        self._is_critical_protected = "SystemCriticalPods" in self._on
        self._asked = tuple(
            check
            for check, wanted in (
                (self._claims, "PodsWithPVC" in self._on),
                (self._budget, not self._on.isdisjoint(("PodsWithoutPDB", "PodsWithResourceClaims"))),
                (self._labels, args.label_selector is not None),
            )
            if wanted
        )

    def filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        """The first protection that applies."""
        if not pod.pod.spec.node_name:  # assumed: descheduler, which reads the API server, would not see it
            return Refusal("NotBound", "the pod is not bound to its node yet")
        annotations, is_exact = pod.pod.metadata.annotations, context.is_exact
        under_way = in_progress(pod.pod) if annotations else None
        if under_way is not None:
            return under_way
        if is_exact and EVICT in annotations:
            return None
        hard = self._untouchable(pod)
        if not is_exact:
            hard = hard or _left_to_others(pod, context)
            if hard is not None or annotations.get(EVICT) == "true":
                return hard
            hard = opted_out(pod.pod, context.now) or not_replaced(pod, context.objects)
            if hard is not None:
                return hard
        if PREFER_NO_EVICTION in annotations and self.args.no_eviction_policy == "Mandatory":
            return Refusal("OptedOut", f"the pod's annotation {PREFER_NO_EVICTION} forbids its eviction")
        refusal = hard or self._priority(pod, context) or self._shape(pod, context)
        for check in self._asked:
            if refusal is not None:
                break
            refusal = check(pod, context)
        return refusal or self._last(pod, context)

    def _last(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        """Check replicas, then age, so that a refusal that a surge may lift hides no other one."""
        replicas, age = self._replicas(pod, context), self._age(pod, context)
        if replicas is not None and replicas.yields_to_surge:
            return age or replicas
        return replicas or age

    def pre_eviction_filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        """Check node fit (only in exact mode: the proof is more precise), then the namespace's labels."""
        args = self.args
        is_asked = args.node_fit and context.is_exact
        if is_asked and not fits_any_other_node(pod, self._targets(context), context):
            return Refusal("NodeFit", "the pod does not fit on any other node")
        selector = args.namespace_label_selector
        if selector is not None and not selector.compiled.is_empty:
            namespace = context.objects.namespaces.get(pod.namespace)
            if namespace is None or not selector.compiled.matches(namespace.labels):
                return Refusal(
                    "NamespaceLabelSelector",
                    f"the labels of namespace {pod.namespace} do not match the evictor's"
                    " namespaceLabelSelector",
                )
        return None

    def _targets(self, context: StrategyContext) -> tuple[str, ...]:
        """The nodes that node fit tries, determined once a run, in which nodes do not change."""
        if self.args.targets is None:
            return ()
        key = DefaultEvictor, id(self)
        found: tuple[str, ...] | None = context.kept.get(key)
        if found is None:
            found = context.kept[key] = considered_nodes(context.cluster, self.args.targets)
        return found

    def _untouchable(self, pod: PodInfo) -> Refusal | None:
        annotations = pod.pod.metadata.annotations
        if annotations and pod.pod.is_mirror:
            return Refusal("MirrorPod", "the pod mirrors a static pod of its kubelet")
        if annotations and annotations.get(SOURCE, "api") != "api":
            return Refusal("StaticPod", "the pod is a static pod of its kubelet")
        if pod.is_terminating:
            return Refusal("Terminating", "the pod is being deleted already")
        return None

    def _priority(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        critical = self._is_critical_protected
        priority = pod.pod.spec.priority
        if critical and pod.priority >= SYSTEM_CRITICAL_PRIORITY:
            return Refusal(
                "SystemCriticalPods",
                f"the pod has system critical priority ({pod.priority}) and is protected",
            )
        if (critical or not context.is_exact) and priority is not None:
            threshold = self.threshold_of(context.objects)
            if threshold is not None and priority >= threshold:
                return Refusal(
                    "PriorityThreshold", f"the pod's priority {priority} reaches the threshold {threshold}"
                )
        return None

    def threshold_of(self, objects: ClusterObjects) -> int | None:
        """The priority from which pods are protected; None without one (only SystemCriticalPods applies).

        Raises:
            CannotJudgeError: The PriorityClass of the threshold does not exist.
        """
        given = self.args.priority_threshold
        if given is not None and given.name:
            found = objects.priority_classes.get(given.name)
            if found is None:
                raise CannotJudgeError(f'there is no PriorityClass "{given.name}" to take the threshold from')
            return found.value
        if given is not None and given.value is not None:
            return given.value
        return None

    def _shape(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        owners = pod.pod.metadata.owner_references
        spec = pod.pod.spec
        if not owners:
            if "FailedBarePods" in self._on:
                return Refusal("FailedBarePods", "the pod has no owner that would replace it")
            if pod.pod.status.phase != "Failed":
                return Refusal(
                    "FailedBarePods", "the pod has no owner that would replace it, and has not failed"
                )
        if (
            spec.volumes
            and "PodsWithLocalStorage" in self._on
            and has_local_storage(pod.pod, heeds_waivers=not context.is_exact)
        ):
            return Refusal("PodsWithLocalStorage", "the pod has local storage (hostPath or emptyDir)")
        if "DaemonSetPods" in self._on and pod.pod.metadata.has_owner_of("DaemonSet"):
            return Refusal("DaemonSetPods", "the pod belongs to a DaemonSet")
        return None

    def _claims(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        classes = self.args.protected_classes
        for volume in pod.pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = context.objects.claims.get(f"{pod.namespace}/{name}")
            used = claim.spec.storage_class_name if claim is not None else None
            if not classes or not used or used in classes:
                return Refusal("PodsWithPVC", f"the pod uses PersistentVolumeClaim {name}")
        return None

    def _budget(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        if "PodsWithoutPDB" in self._on and not any(
            _selects(budget.spec.selector, pod)
            for budget in context.objects.budgets.values()
            if budget.metadata.namespace == pod.namespace
        ):
            return Refusal("PodsWithoutPDB", "no PodDisruptionBudget covers the pod")
        if "PodsWithResourceClaims" in self._on and pod.pod.spec.resource_claims:
            return Refusal("PodsWithResourceClaims", "the pod uses resource claims (devices)")
        return None

    def _labels(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        selector = self.args.label_selector
        if selector is not None and not selector.compiled.matches(pod.labels):
            return Refusal("LabelSelector", "the pod's labels do not match the evictor's labelSelector")
        return None

    def _replicas(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        least, metadata, is_exact = self._min_replicas, pod.pod.metadata, context.is_exact
        if least <= 1 or (is_exact and len(metadata.owner_references) != 1):
            return None
        for owner in metadata.owner_references if is_exact else metadata.owners:
            count = context.replicas(pod.namespace, owner.uid)
            if count < least:
                return Refusal(
                    "MinReplicas",
                    f"{_shown(owner, is_exact=is_exact)} has {counted(count, 'pod')}, fewer than minReplicas"
                    f" {least}",
                    yields_to_surge=not is_exact and count == 1,
                )
            if not is_exact and context.ready_replicas(pod.namespace, owner.uid) <= 1 and is_serving(pod):
                whose = _shown(owner, is_exact=False)
                return Refusal("LastReady", f"the pod is the only ready one of {whose}", yields_to_surge=True)
        return None

    def _age(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        youngest = self._youngest
        if youngest is None:
            return None
        started = pod.pod.status.start_time
        if started is None:
            return Refusal("MinPodAge", "the pod has not started yet")
        if context.now - started < youngest:
            return Refusal("MinPodAge", f"the pod started less than {self.args.min_pod_age} ago")
        return None


def _left_to_others(pod: PodInfo, context: StrategyContext) -> Refusal | None:
    """Why the pod is left to the owner of its node, who evicts it."""
    row = context.cluster.row_of_pod(pod.uid)
    if row is None:
        return None
    known: dict[int, Refusal | None] = context.kept.setdefault(leaving, {})  # nodes do not change in a run
    if row not in known:
        known[row] = leaving(context.cluster.nodes[row])
    return known[row]


def _shown(owner: OwnerReference, *, is_exact: bool) -> str:
    """An owner whose pods are counted, for people."""
    aside = "" if owner.controller or is_exact else " (which is no controller of it)"
    return f"{owner.kind} {owner.name}{aside}"


def _selects(selector: LabelSelector | None, pod: PodInfo) -> bool:
    try:
        return compile_selector(selector).matches(pod.labels)
    except SelectorError:
        return False
