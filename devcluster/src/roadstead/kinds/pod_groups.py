"""Checks the groups of scheduling.k8s.io, which are served if a cluster says so: v1alpha2, or v1alpha3.

In v1alpha2 the server does as one of 1.36 with the gates GenericWorkload, TopologyAwareWorkloadScheduling,
WorkloadAwarePreemption and DRAWorkloadResourceClaims. In v1alpha3 it has CompositePodGroups, too, as one of
1.37 with the gate CompositePodGroup; the numbers of a gang may change there, as from 1.38 on.

Source: Kubernetes v1.36 ``pkg/registry/scheduling``, ``staging/src/k8s.io/api/scheduling/v1alpha2`` and
``plugin/pkg/admission/priority``; ``v1alpha3/types.go`` of the development branch, and KEP-6012.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import IMMUTABLE, duplicate, invalid, one_of, required
from roadstead.kinds.checks.metadata import invalid_value, qualified_name_faults
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.values.resources import STATUS, Resource
from roadstead.values.status_errors import Cause
from roadstead.values.status_errors import forbidden as refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj

GROUP, VERSION, COMPOSITE_VERSION = "scheduling.k8s.io", "v1alpha2", "v1alpha3"
POD_GROUPS, WORKLOADS = f"podgroups.{GROUP}", f"workloads.{GROUP}"
COMPOSITES = f"compositepodgroups.{GROUP}"


def resources(*, composites: bool) -> Iterator[Resource]:
    """What is served: of v1alpha2, or of v1alpha3 with composite groups."""
    kinds = ["PodGroup", *(["CompositePodGroup"] if composites else [])]
    version = COMPOSITE_VERSION if composites else VERSION
    for kind in kinds:
        name = kind.lower()
        yield Resource(GROUP, version, kind, f"{name}s", name, namespaced=True, subresources=(STATUS,))
    yield Resource(GROUP, version, "Workload", "workloads", "workload", namespaced=True)


_POLICIES = ("basic", "gang")
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_MOST_CLAIMS = 4


def group_of(pod: Obj) -> str:
    """The name of the PodGroup that a pod names, "" for none."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


class PodGroups(StatusKind):
    """PodGroups.

    Args:
        composites: Whether the version is the one that has composite groups.
    """

    counts_generation = False
    key = POD_GROUPS
    least = "minCount"

    def __init__(self, *, composites: bool = False) -> None:
        self._composites = composites

    def default(self, obj: Obj) -> None:
        """Members may be disrupted one by one."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("schedulingPolicy", {})
        spec.setdefault("disruptionMode", {"single": {}} if self._composites else "Pod")

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Set the priority of its class, else the default one."""
        spec, classes = obj["spec"], "priorityclasses.scheduling.k8s.io"
        where, name = objects.resource(self.key), obj["metadata"].get("name", "")
        chosen = spec.get("priorityClassName", "")
        found = objects.find(classes, None, chosen) if chosen else None
        if chosen and found is None:
            raise refused(where, name, f"no PriorityClass with name {chosen} was found")
        if not chosen:
            defaults = [each for each in objects.list(classes) if each.get("globalDefault")]
            found = min(defaults, key=lambda each: int(each.get("value", 0)), default=None)
            if found is not None:
                spec["priorityClassName"] = found["metadata"]["name"]
        value = 0 if found is None else found.get("value", 0)
        given = spec.get("priority", value)
        if given != value:
            why = (
                f"priority set in the pod group ({given}) must match the priority computed ({value}) based "
                "on the priority class set in the spec"
            )
            raise refused(where, name, why)
        spec["priority"] = value

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of policy, mode and constraints."""
        spec = obj["spec"]
        mode = spec["disruptionMode"]
        if self._composites:
            wrong = _one_causes(mode, "spec.disruptionMode", ("all", "single"))
            needs_workload = spec.get("parentCompositePodGroupName") or self.key == COMPOSITES
            wrong += [required("spec.workloadRef")] if needs_workload and not spec.get("workloadRef") else []
        else:
            wrong = one_of("spec.disruptionMode", mode, ("Pod", "PodGroup"))
        return [
            *policy_causes(spec["schedulingPolicy"], "spec.schedulingPolicy", self.least),
            *wrong,
            *_topology_causes(spec.get("schedulingConstraints") or {}, "spec.schedulingConstraints.topology"),
            *_claims_causes(spec.get("resourceClaims") or [], "spec.resourceClaims"),
        ]

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """No part of the spec changes; from v1alpha3 on the number of a gang may."""
        now, then = new["spec"], old["spec"]
        if self._composites and "gang" in now["schedulingPolicy"] and "gang" in then["schedulingPolicy"]:
            then = {**then, "schedulingPolicy": now["schedulingPolicy"]}
            causes = policy_causes(now["schedulingPolicy"], "spec.schedulingPolicy", self.least)
            if causes:
                return causes
        return [
            Cause(f"spec.{name}", f"Invalid value: null: {IMMUTABLE}")
            for name in sorted({*now, *then})
            if now.get(name) != then.get(name)
        ]


class CompositePodGroups(PodGroups):
    """Groups of groups."""

    key = COMPOSITES
    least = "minGroupCount"


class Workloads(Kind):
    """Workloads; nothing is made from their templates."""

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of the policies."""
        causes: list[Cause] = []
        for index, each in enumerate((obj.get("spec") or {}).get("podGroupTemplates") or ()):
            at = f"spec.podGroupTemplates[{index}]"
            causes += [] if each.get("name") else [required(f"{at}.name")]
            causes += policy_causes(each.get("schedulingPolicy") or {}, f"{at}.schedulingPolicy")
        return causes


def policy_causes(policy: Obj, at: str, least: str = "minCount") -> list[Cause]:
    """Exactly one policy is set, and a gang has a size."""
    causes = _one_causes(policy, at, _POLICIES)
    if causes or "gang" not in policy:
        return causes
    count = policy["gang"].get(least) or 0
    if not count:
        return [required(f"{at}.gang.{least}")]
    return [] if count > 0 else [invalid(f"{at}.gang.{least}", count, "must be greater than or equal to 1")]


def _one_causes(union: Obj, at: str, names: tuple[str, ...]) -> list[Cause]:
    """Exactly one of these fields is set."""
    given = [name for name in names if union.get(name) is not None]
    words = ", ".join(f"`{name}`" for name in names)
    if not given:
        return [invalid_value(at, "", f"must specify one of: {words}")]
    if len(given) > 1:
        return [invalid_value(at, f"{{{', '.join(given)}}}", f"must specify exactly one of: {words}")]
    return []


def _topology_causes(constraints: Obj, at: str) -> list[Cause]:
    """At most one label."""
    given = constraints.get("topology") or []
    if len(given) > 1:
        return [Cause(at, f"Too many: {len(given)}: must have at most 1 item", "FieldValueTooMany")]
    causes: list[Cause] = []
    for index, each in enumerate(given):
        key = each.get("key", "")
        here = f"{at}[{index}].key"
        causes += [invalid_value(here, key, fault) for fault in qualified_name_faults(key) if key]
        causes += [] if key else [required(here)]
    return causes


def _claims_causes(claims: list[Obj], at: str) -> list[Cause]:
    """At most four claims of different names, each with one source."""
    causes: list[Cause] = []
    if len(claims) > _MOST_CLAIMS:
        much = f"Too many: {len(claims)}: must have at most {_MOST_CLAIMS} items"
        causes.append(Cause(at, much, "FieldValueTooMany"))
    names = [each.get("name", "") for each in claims]
    words = ", ".join(f"`{name}`" for name in _SOURCES)
    for index, each in enumerate(claims):
        here = f"{at}[{index}]"
        if not names[index]:
            causes.append(required(f"{here}.name"))
        elif names[index] in names[:index]:
            causes.append(duplicate(here, names[index]))
        given = [name for name in _SOURCES if each.get(name)]
        if len(given) != 1:
            shown = f"{{{', '.join(given)}}}" if given else ""
            exactly = "exactly one" if given else "one"
            causes.append(invalid_value(here, shown, f"must specify {exactly} of: {words}"))
    return causes
