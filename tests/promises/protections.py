"""ProtectionPromise: no policy evicts a pod that its scope or its evictor protects, or that forbids it.

The pod, its namespace and the policy are each taken as they were at any time at which the operator may have
seen them (:mod:`promises.view`, :func:`promises.policies.in_force`): if any of these permits the eviction, it
is right. Victims of preemption are not asked about: priorities and budgets protect them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from promises.commits import Commit, Obj
from promises.evictions import is_eviction, is_removal
from promises.findings import Findings
from promises.lives import PodLives
from promises.moments import duration_s, seconds
from promises.pods import is_leaving, is_ready, node_of, owners_of, priority_of
from promises.policies import evictors_of, in_force, rebalancing_of
from promises.record_book import RecordBook, RecordStory
from promises.selectors import selects
from promises.view import BUDGETS, CLASSES, POLICIES, View

OURS, UPSTREAMS = "plimsoll.dev/evict", "descheduler.alpha.kubernetes.io/evict"
PREFER_NO = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
MIRROR, SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
OPT_OUTS = {
    "karpenter.sh/do-not-disrupt": ("true",),
    "karpenter.sh/do-not-evict": ("true",),
    SAFE: ("false",),
    "autoscaling.cast.ai/removal-disabled": ("true",),
    "beta.evictor.cast.ai/eviction-disabled": ("true",),
    "scheduling.koordinator.sh/eviction-cost": ("2147483647",),
}
SYSTEM_CRITICAL, LOWEST = 2_000_000_000, -(2**31)

#: Protections that hold unless the policy says otherwise.
DEFAULTS = ("SystemCriticalPods", "FailedBarePods", "PodsWithLocalStorage", "DaemonSetPods")
EXTRAS = ("PodsWithPVC", "PodsWithResourceClaims")


@dataclass(frozen=True, slots=True)
class Case:
    """One eviction, in one way in which the operator may have seen the cluster.

    Attributes:
        sent: When it was sent by the operator's own clock, in seconds since the epoch; None if not known.
    """

    pod: Obj
    namespace: Obj
    node: Obj
    policy: Obj
    record: RecordStory
    at: float
    sent: float | None


class ProtectionPromise:
    """Judges which pods are evicted."""

    def __init__(self, view: View, findings: Findings, lives: PodLives, book: RecordBook) -> None:
        self._view = view
        self._findings = findings
        self._lives = lives
        self._book = book

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if is_removal(commit) and is_eviction(commit.author):
            for record in self._book.announced(commit.obj["metadata"]["uid"], commit.at):
                if not record.is_victim:
                    self._evicted(commit, record)

    def _evicted(self, commit: Commit, record: RecordStory) -> None:
        meta, at = commit.obj["metadata"], commit.at
        reason = "its policy did not exist"
        for case in self._cases(commit, record):
            found = next(self._against(case), "")
            if not found:
                return
            reason = found
        self._findings.violated(at, f"{meta['name']} was evicted for {record.spec['policy']}: {reason}")

    def _cases(self, commit: Commit, record: RecordStory) -> Iterator[Case]:
        meta, at = commit.obj["metadata"], commit.at
        sent = record.has_time("Evicting")
        pods = [
            each
            for each in self._view.recent("pods", commit.key, at)
            if each is not None and each["metadata"]["uid"] == meta["uid"] and not is_leaving(each)
        ]
        ways = product(
            in_force(self._view, record, at),
            pods,
            self._view.recent("namespaces", ("", meta["namespace"]), at),
            self._view.recent("nodes", ("", node_of(commit.obj)), at),
        )
        for policy, pod, namespace, node in ways:
            if policy is not None:
                yield Case(
                    pod,
                    namespace or {"metadata": {}},
                    node or {"metadata": {}},
                    policy,
                    record,
                    at,
                    seconds(sent) if sent else None,
                )

    def _against(self, case: Case) -> Iterator[str]:
        """Reasons why the pod must stay."""
        rebalancing, record = rebalancing_of(case.policy), case.record
        mode = rebalancing.get("mode") or "DryRun"
        if not rebalancing or case.policy["spec"].get("suspend"):
            yield "the policy moves no pods"
        if mode == "DryRun" or record.spec.get("mode") != mode:
            yield f"the policy is in mode {mode}"
        if mode == "Approve" and record.approved_until < case.at - self._view.stale_s:
            yield "it is not approved"
        yield from self._out_of_scope(case)
        annotations = case.pod["metadata"].get("annotations") or {}
        above = case.namespace["metadata"].get("annotations") or {}
        if "false" in (annotations.get(OURS), above.get(OURS)):
            yield f"{OURS} is false"
        is_exact = rebalancing.get("planner") == "Upstream"
        if is_exact and UPSTREAMS in annotations:
            return
        reasons = []
        for evictor in evictors_of(case.policy, record.spec["strategy"]):
            reason = next(self._protected(case, evictor, is_exact=is_exact), "")
            if not reason:
                return
            reasons.append(reason)
        yield from reasons

    def _out_of_scope(self, case: Case) -> Iterator[str]:
        scope = case.policy["spec"].get("scope") or {}
        names = scope.get("namespaces") or {}
        meta, spec = case.pod["metadata"], case.pod["spec"]
        if names.get("include") and meta["namespace"] not in names["include"]:
            yield "its namespace is not included"
        if meta["namespace"] in (names.get("exclude") or ()):
            yield "its namespace is excluded"
        if not selects(names.get("labelSelector"), case.namespace["metadata"].get("labels")):
            yield "its namespace's labels are out of scope"
        if not selects(scope.get("podSelector"), meta.get("labels")):
            yield "its labels are out of scope"
        if not selects(scope.get("nodeSelector"), case.node["metadata"].get("labels")):
            yield "its node is out of scope"
        threshold = scope.get("priorityThreshold")
        if threshold and priority_of(case.pod) >= self._priority(threshold, unknown=LOWEST):
            yield "its priority is out of scope"
        served = {
            each["spec"]["scheduling"].get("schedulerName")
            for each in (*self._view.objects(POLICIES), case.policy)
            if each["spec"].get("scheduling")
        }
        others = scope.get("otherSchedulers") or ()
        scheduler = spec.get("schedulerName")
        if scheduler not in {*served, *others} and not self._was_served(scheduler, case.at):
            yield "another scheduler places it"

    def _was_served(self, scheduler: str | None, at: float) -> bool:
        """Whether some policy served a scheduler name lately that none serves now."""
        return any(
            each is not None and (each["spec"].get("scheduling") or {}).get("schedulerName") == scheduler
            for key in self._view.known(POLICIES)
            for each in self._view.recent(POLICIES, key, at)
        )

    def _priority(self, threshold: Obj, unknown: int) -> int:
        """The priority that a threshold names."""
        if threshold.get("name"):
            found = self._view.find(CLASSES, "", threshold["name"])
            return unknown if found is None else int(found["value"])
        return int(threshold["value"])

    def _protected(self, case: Case, evictor: Obj, *, is_exact: bool) -> Iterator[str]:
        """Reasons of one evictor; those that no annotation lifts come first."""
        pod = case.pod
        annotations = pod["metadata"].get("annotations") or {}
        if MIRROR in annotations or annotations.get(SOURCE, "api") != "api":
            yield "it is static"
        namespaces = evictor.get("namespaceLabelSelector")
        if not selects(namespaces, case.namespace["metadata"].get("labels")):
            yield "its namespace's labels are not the evictor's"
        if not is_exact:
            if annotations.get(UPSTREAMS) == "true":
                return
            if annotations.get(UPSTREAMS) == "false":
                yield f"{UPSTREAMS} is false"
            yield from (
                f"{name} is {value}"
                for name, values in OPT_OUTS.items()
                for value in values
                if annotations.get(name) == value
            )
        if evictor.get("noEvictionPolicy") == "Mandatory" and PREFER_NO in annotations:
            yield f"it has {PREFER_NO}"
        yield from self._kind(case, evictor, is_exact=is_exact)
        if not selects(evictor.get("labelSelector"), pod["metadata"].get("labels")):
            yield "its labels are not the evictor's"
        yield from self._lonely(case, evictor, is_exact=is_exact)
        life = self._lives.find(pod["metadata"]["uid"])
        yield from _young(case, evictor, 0.0 if life is None else case.at - life.bound_at)

    def _kind(self, case: Case, evictor: Obj, *, is_exact: bool) -> Iterator[str]:
        """Protections of kinds of pods."""
        pod, spec = case.pod, case.pod["spec"]
        given = evictor.get("podProtections") or {}
        extra = given.get("extraEnabled")
        on = (set(DEFAULTS) - set(given.get("defaultDisabled") or ())) | set(
            EXTRAS if extra is None else extra
        )
        critical = "SystemCriticalPods" in on
        if critical and priority_of(pod) >= SYSTEM_CRITICAL:
            yield "it is critical for the system"
        threshold = evictor.get("priorityThreshold")
        least = self._priority(threshold, unknown=LOWEST) if threshold else 2**31
        if (critical or not is_exact) and priority_of(pod) >= least:
            yield "its priority reaches the evictor's threshold"
        owners, volumes = owners_of(pod), spec.get("volumes") or ()
        is_failed = (pod.get("status") or {}).get("phase") == "Failed"
        if not owners and ("FailedBarePods" in on or not is_failed):
            yield "it has no owner"
        annotations = pod["metadata"].get("annotations") or {}
        waived = () if is_exact else annotations.get(LOCAL_VOLUMES, "").split(",")
        local = {each["name"] for each in volumes if "emptyDir" in each or "hostPath" in each}
        is_safe = not is_exact and annotations.get(SAFE) == "true"
        if "PodsWithLocalStorage" in on and local - set(waived) and not is_safe:
            yield "it has local storage"
        if "DaemonSetPods" in on and any(each["kind"] == "DaemonSet" for each in owners):
            yield "it is of a DaemonSet"
        if "PodsWithPVC" in on and any(self._is_protected(each, case, given) for each in volumes):
            yield "it has a volume claim"
        if "PodsWithoutPDB" in on and not self._has_budget(pod):
            yield "it has no budget"
        if "PodsWithResourceClaims" in on and spec.get("resourceClaims"):
            yield "it has resource claims"

    def _is_protected(self, volume: Obj, case: Case, given: Obj) -> bool:
        claim = volume.get("persistentVolumeClaim")
        if claim is None:
            return False
        config = ((given.get("config") or {}).get("PodsWithPVC") or {}).get("protectedStorageClasses") or ()
        found = self._view.find(
            "persistentvolumeclaims", case.pod["metadata"]["namespace"], claim["claimName"]
        )
        used = ((found or {}).get("spec") or {}).get("storageClassName")
        return not config or not used or used in {each["name"] for each in config}

    def _has_budget(self, pod: Obj) -> bool:
        meta = pod["metadata"]
        return any(
            each["metadata"]["namespace"] == meta["namespace"]
            and each["spec"].get("selector") is not None
            and selects(each["spec"]["selector"], meta.get("labels"))
            for each in self._view.objects(BUDGETS)
        )

    def _lonely(self, case: Case, evictor: Obj, *, is_exact: bool) -> Iterator[str]:
        """Replicas that an owner must have; where two are wanted, the only ready one stays."""
        least, owners = evictor.get("minReplicas", 2), owners_of(case.pod)
        if least < 2 or (is_exact and len(owners) != 1):
            return
        controllers = [] if is_exact else [each for each in owners if each.get("controller")]
        since = case.at - self._view.stale_s
        for owner in {each["uid"]: None for each in controllers or owners}:
            there = self._lives.most_there(owner, since, case.at)
            if there < least:
                yield f"its owner has {there} pods, {least} must be"
            if not is_exact and is_ready(case.pod) and self._lives.most_serving(owner, since, case.at) < 2:
                yield "it is the only one that is ready"


def _young(case: Case, evictor: Obj, seen_s: float) -> Iterator[str]:
    """The age of the pod by the operator's own clock, whose times are whole seconds, or since its binding.

    A clock that jumps between the decision and the record shows an age that no decision was made by.
    """
    least, started = evictor.get("minPodAge"), (case.pod.get("status") or {}).get("startTime")
    if not least:
        return
    if not started:
        yield "it has not started"
    elif (
        case.sent is not None
        and case.sent - seconds(started) < duration_s(least) - 1.0
        and seen_s < duration_s(least) - 1.0
    ):
        yield f"it was {case.sent - seconds(started):.0f} s old, {least} must be"
