"""Happenings are what features of a world led to, counted from the commits of the API server."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from promises.commits import Commit
from roadstead.values.resources import Obj
from simulation.world.approvals import APPROVED
from simulation.world.demands import GADGET


class Happening(StrEnum):
    """What may have happened."""

    PREEMPTED = "pods deleted to make room for others"
    VICTIM_EVICTED = "pods evicted to make room for others"
    BOUND_WITH_PORT = "pods with host ports bound"
    BOUND_WITH_AFFINITY = "pods with required affinities bound"
    BOUND_WITH_SPREAD = "pods with hard spreading bound"
    BOUND_WITH_INIT = "pods with init containers or overhead bound"
    BOUND_WITH_GADGET = "pods with extended resources bound"
    GANG_STARTED = "gangs started"
    GANG_HELD = "gangs that did not fit as a whole"
    CLAIM_BOUND = "claims bound"
    CLAIM_SELECTED = "claims for which a node was selected"
    VOLUME_RESERVED = "existing volumes reserved for a claim"
    SELECTION_TAKEN_BACK = "provisioners that gave up"
    SURGE_BEGUN = "surges begun"
    SURGE_SETTLED = "surges that settled"
    APPROVED_MOVED = "approved moves made"
    REJECTED = "moves rejected"
    STOPPED = "moves blocked or stopped by people"
    RAN_NOW = "policies run by hand"
    PREDICTED = "moves predicted by dry runs"
    MOVED = "moves settled"
    BUNDLE = "moves made all or none"
    OPTIMISED = "runs of the planner Optimal with moves"
    SECOND_BOUND = "pods of a second scheduler name bound"
    ODD_ACCEPTED = "odd objects accepted"
    DEFINITION_DELETED = "custom resource definitions deleted"
    OPEN_RECORD_DELETED = "records of open moves deleted"
    NAMESPACE_DELETED = "namespaces deleted"
    TOKEN_EXPIRED = "tokens of pages expired in the middle of a list"
    EXTENDER_ASKED = "requests to extenders that were well"
    EXTENDER_FAILED = "requests to extenders that were not"
    EXTENDER_BOUND = "pods bound by extenders"
    BOUND_WITH_DEVICES = "pods with devices bound"
    DEVICES_GIVEN_BACK = "claims deallocated"


class Happenings:
    """Counts them.

    Attributes:
        counts: How often each has happened.
    """

    def __init__(self) -> None:
        self.counts: Counter[Happening] = Counter()

    def see(self, commit: Commit) -> None:
        """A write was committed."""
        if commit.type == "DELETED":
            self.counts.update(of_deletion(commit.collection, commit.obj))
            return
        if commit.before is None and commit.obj["metadata"]["name"].startswith("odd-"):
            self.counts[Happening.ODD_ACCEPTED] += 1
        look = LOOKS.get(commit.collection)
        if look is not None:
            self.counts.update(look(commit.obj, commit.before or {}))


def of_deletion(collection: str, last: Obj) -> list[Happening]:
    """What a deletion counts as."""
    if collection == "evictions.plimsoll.dev":
        return [Happening.OPEN_RECORD_DELETED] if _phase(last) in ("Planned", "Surging", "Evicting") else []
    found = {
        "customresourcedefinitions.apiextensions.k8s.io": Happening.DEFINITION_DELETED,
        "namespaces": Happening.NAMESPACE_DELETED,
    }.get(collection)
    return [found] if found else []


def of_pod(pod: Obj, before: Obj) -> list[Happening]:
    """What has become of a pod."""
    found = []
    reason, former = (_condition(each, "DisruptionTarget") for each in (pod, before))
    if reason == "PreemptionByScheduler" != former:
        found.append(Happening.PREEMPTED)
    spec = pod["spec"]
    if not spec.get("nodeName") or not before or before["spec"].get("nodeName"):
        return found
    affinity = spec.get("affinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    kinds = {
        Happening.BOUND_WITH_PORT: any("hostPort" in port for port in _ports(spec)),
        Happening.BOUND_WITH_AFFINITY: any((affinity.get(kind) or {}).get(required) for kind in affinity),
        Happening.BOUND_WITH_SPREAD: any(
            each["whenUnsatisfiable"] == "DoNotSchedule"
            for each in spec.get("topologySpreadConstraints") or ()
        ),
        Happening.BOUND_WITH_INIT: bool(spec.get("initContainers") or spec.get("overhead")),
        Happening.BOUND_WITH_GADGET: GADGET in str(spec["containers"]),
        Happening.SECOND_BOUND: spec["schedulerName"] == "plimsoll-batch",
        Happening.BOUND_WITH_DEVICES: bool(spec.get("resourceClaims")) and spec["schedulerName"] != "rival",
    }
    return found + [kind for kind, holds in kinds.items() if holds]


def of_group(group: Obj, before: Obj) -> list[Happening]:
    """What has become of a gang."""
    now, then = (group.get("status") or {}), (before.get("status") or {})
    found = []
    started = ("Scheduled", "Running")
    if now.get("phase") in started and then.get("phase") not in started:
        found.append(Happening.GANG_STARTED)
    if _has(group, "Scheduled", "False") and not _has(before, "Scheduled", "False"):
        found.append(Happening.GANG_HELD)
    return found


def of_claim(claim: Obj, before: Obj) -> list[Happening]:
    """What has become of a claim."""
    selected = "volume.kubernetes.io/selected-node"
    is_selected, was_selected = (
        selected in (each.get("metadata", {}).get("annotations") or {}) for each in (claim, before)
    )
    found = []
    if is_selected and not was_selected:
        found.append(Happening.CLAIM_SELECTED)
    if was_selected and not is_selected:
        found.append(Happening.SELECTION_TAKEN_BACK)
    if _phase(claim) == "Bound" != _phase(before):
        found.append(Happening.CLAIM_BOUND)
    return found


def of_device_claim(claim: Obj, before: Obj) -> list[Happening]:
    """What has become of a resource claim."""
    has, had = ("allocation" in (each.get("status") or {}) for each in (claim, before))
    return [Happening.DEVICES_GIVEN_BACK] if had and not has else []


def of_volume(volume: Obj, before: Obj) -> list[Happening]:
    """What has become of a volume."""
    reserved = before and volume["spec"].get("claimRef") and not before["spec"].get("claimRef")
    return [Happening.VOLUME_RESERVED] if reserved else []


def of_record(record: Obj, before: Obj) -> list[Happening]:
    """What has become of a move."""
    phase, spec = _phase(record), record["spec"]
    if phase == _phase(before):
        return []
    answer = (record["metadata"].get("annotations") or {}).get(APPROVED)
    surge = spec.get("surge")
    is_settled = phase == "Settled"
    kinds = {
        Happening.VICTIM_EVICTED: is_settled and spec.get("strategy") == "DefaultPreemption",
        Happening.SURGE_BEGUN: phase == "Surging",
        Happening.SURGE_SETTLED: is_settled and surge is not None,
        Happening.APPROVED_MOVED: is_settled and answer == "true",
        Happening.REJECTED: phase == "Cancelled" and answer == "false",
        Happening.STOPPED: "stop" in (record.get("status") or {}).get("message", ""),
        Happening.PREDICTED: phase == "Predicted",
        Happening.MOVED: is_settled,
        Happening.BUNDLE: is_settled and spec.get("bundle") is not None,
    }
    return [kind for kind, holds in kinds.items() if holds]


def of_policy(policy: Obj, before: Obj) -> list[Happening]:
    """What a policy has received, and what it did."""
    run = "plimsoll.dev/run"
    now, then = ((each.get("metadata", {}).get("annotations") or {}).get(run) for each in (policy, before))
    found = [Happening.RAN_NOW] if now != then else []
    last, former = ((each.get("status") or {}).get("lastRun") or {} for each in (policy, before))
    is_optimal = (last.get("optimisation") or {}).get("moves", 0) > 0
    if is_optimal and last.get("optimisation") != former.get("optimisation"):
        found.append(Happening.OPTIMISED)
    return found


LOOKS = {
    "pods": of_pod,
    "podgroups.plimsoll.dev": of_group,
    "persistentvolumeclaims": of_claim,
    "persistentvolumes": of_volume,
    "resourceclaims.resource.k8s.io": of_device_claim,
    "evictions.plimsoll.dev": of_record,
    "schedulingpolicies.plimsoll.dev": of_policy,
}


def _phase(obj: Obj) -> str:
    return str((obj.get("status") or {}).get("phase", ""))


def _has(obj: Obj, kind: str, status: str = "True") -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == status for each in conditions)


def _condition(obj: Obj, kind: str) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(each.get("reason", "")) for each in conditions if each["type"] == kind), "")


def _ports(spec: Obj) -> list[Obj]:
    return [port for container in spec["containers"] for port in container.get("ports") or ()]
