"""Converts PodGroups between the core API, ours, scheduler-plugins, Volcano and KAI.

One table says where each kind has what; all conversions read it. What a kind has no field for is reported
with a sentence of its own.

Sources: Kubernetes v1.36 and v1.37 (``scheduling.k8s.io``), scheduler-plugins v0.33
(``scheduling.x-k8s.io/v1alpha1``), Volcano v1.13 (``scheduling.volcano.sh/v1beta1``), KAI v0.9
(``scheduling.run.ai/v2alpha2``).
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from msgspec import Struct, field
from pydantic import ValidationError

from plimsoll.api.v1alpha1.pod_group import PodGroupResource
from plimsoll.framework import ConfigurationError
from plimsoll.migration.documents import Path
from plimsoll.migration.report import Note, ReportWriter, carried, differs, dropped
from plimsoll.model.kinds.pod_group import CORE, PREFERRED_TOPOLOGY

LEAST, RESOURCES, TIMEOUT = "members that start together", "minimum of resources", "time limit of a start"
PRIORITY, QUEUE = "priority class", "queue"
REQUIRED, PREFERRED, WHOLE = "required topology", "preferred topology", "disruption as a whole"

FOR_CORE = {
    RESOURCES: "The core API has no minimum of resources: a start is tried as soon as the pods exist.",
    TIMEOUT: "A group of the core API cannot say it: a start has five minutes.",
    QUEUE: "Pods name their queue in the label plimsoll.dev/queue; see spec.scheduling.fairShare.",
}
"""What the core API's groups do not have."""


class GroupFormat(Struct, frozen=True):
    """One kind of PodGroup.

    Attributes:
        versions: Its API versions; the first one is written.
        fields: The path of each thing that it can say.
        marks: How pods name a group of the kind.
        without: A sentence for each thing that it cannot say.
        others: A sentence for each of its further fields.
    """

    versions: tuple[str, ...]
    fields: Mapping[str, Path]
    marks: str
    without: Mapping[str, str]
    others: Mapping[str, str] = field(default_factory=dict)


FORMATS: Mapping[str, GroupFormat] = {
    CORE: GroupFormat(
        tuple(f"{CORE}/{version}" for version in ("v1beta1", "v1alpha3", "v1alpha2")),
        {
            LEAST: ("spec", "schedulingPolicy", "gang", "minCount"),
            PRIORITY: ("spec", "priorityClassName"),
            REQUIRED: ("spec", "schedulingConstraints", "topology", 0, "key"),
            PREFERRED: ("metadata", "annotations", PREFERRED_TOPOLOGY),
        },
        "spec.schedulingGroup.podGroupName",
        FOR_CORE,
        {
            "spec.schedulingPolicy.basic": "Without a gang, each pod starts by itself.",
            "spec.disruptionMode": "Only the core API can say that a group leaves whole; below minMember no "
            "group is left anyway.",
            "spec.priority": "It follows from the priority class.",
            "spec.preemptionPolicy": "Pods say it: spec.preemptionPolicy.",
            "spec.resourceClaims": "Pods name their claims themselves.",
            "spec.workloadRef": "Workloads are not needed.",
            "spec.podGroupTemplateRef": "Workloads are not needed.",
            "spec.parentCompositePodGroupName": "Groups of groups exist in the core API only.",
        },
    ),
    "plimsoll.dev": GroupFormat(
        ("plimsoll.dev/v1alpha1",),
        {
            LEAST: ("spec", "minMember"),
            RESOURCES: ("spec", "minResources"),
            TIMEOUT: ("spec", "scheduleTimeoutSeconds"),
            REQUIRED: ("spec", "topology", "required"),
            PREFERRED: ("spec", "topology", "preferred"),
        },
        "label plimsoll.dev/pod-group",
        {
            PRIORITY: "The priority of the pods counts: write priorityClassName in their template.",
            QUEUE: FOR_CORE[QUEUE],
        },
    ),
    "scheduling.x-k8s.io": GroupFormat(
        ("scheduling.x-k8s.io/v1alpha1",),
        {
            LEAST: ("spec", "minMember"),
            RESOURCES: ("spec", "minResources"),
            TIMEOUT: ("spec", "scheduleTimeoutSeconds"),
        },
        "label scheduling.x-k8s.io/pod-group",
        {
            PRIORITY: "The priority of the pods counts: write priorityClassName in their template.",
            QUEUE: "scheduler-plugins has quotas of namespaces (ElasticQuota), and no queues.",
            REQUIRED: "scheduler-plugins places pods of a group on any nodes; use pod affinity.",
            PREFERRED: "scheduler-plugins places pods of a group on any nodes; use preferred pod affinity.",
        },
    ),
    "scheduling.volcano.sh": GroupFormat(
        ("scheduling.volcano.sh/v1beta1",),
        {
            LEAST: ("spec", "minMember"),
            RESOURCES: ("spec", "minResources"),
            PRIORITY: ("spec", "priorityClassName"),
            QUEUE: ("spec", "queue"),
        },
        "annotation scheduling.k8s.io/group-name",
        {
            TIMEOUT: "Volcano has no time limit of a start.",
            REQUIRED: "Volcano names tiers of HyperNodes: write spec.networkTopology with mode hard.",
            PREFERRED: "Volcano names tiers of HyperNodes: write spec.networkTopology with mode soft.",
        },
        {
            "spec.networkTopology": "Its tiers are those of HyperNodes: write the node label of the tier, "
            "required for mode hard and preferred for mode soft.",
            "spec.minTaskMember": "Members are counted together; make a group of each task that needs its "
            "own minimum.",
            "spec.subGroupPolicy": "A group has no subgroups here; make a group of each.",
        },
    ),
    "scheduling.run.ai": GroupFormat(
        ("scheduling.run.ai/v2alpha2",),
        {
            LEAST: ("spec", "minMember"),
            PRIORITY: ("spec", "priorityClassName"),
            QUEUE: ("spec", "queue"),
            REQUIRED: ("spec", "topologyConstraint", "requiredTopologyLevel"),
            PREFERRED: ("spec", "topologyConstraint", "preferredTopologyLevel"),
        },
        "annotation pod-group-name",
        {
            RESOURCES: "KAI has no minimum of resources: it follows from the pods.",
            TIMEOUT: "KAI has no time limit of a start.",
        },
        {
            "spec.topologyConstraint.topology": "Levels are node labels; the policy's "
            "groups.topologyLevels says which is wider.",
            "spec.subGroups": "A group has no subgroups here; make a group of each.",
            "spec.minSubGroup": "A group has no subgroups here; make a group of each.",
            "spec.markUnschedulable": "Pods that wait always say why in their condition.",
            "spec.preemptibility": "Pods of higher priority preempt; write the priority into the pods.",
            "spec.schedulingBackoff": "Pods that wait are tried again when something changes.",
        },
    ),
}
"""The kinds by API group."""

EVERYWHERE = {
    "status": "The scheduler writes the status.",
    "metadata.ownerReferences": "They belong to the object in the cluster; its controller makes the new one.",
}
"""A sentence for each field that every kind has and no conversion keeps."""


def format_of(api_version: str) -> str:
    """The API group of a PodGroup that can be converted, "" for another."""
    return next((name for name, each in FORMATS.items() if api_version in each.versions), "")


def converted_group(document: Mapping[str, Any], target: str, report: ReportWriter) -> dict[str, Any]:
    """A PodGroup of another kind that says the same, as far as that kind can.

    Args:
        document: The PodGroup.
        target: The API group of the result.
        report: Receives a note for each field.

    Raises:
        ConfigurationError: It has no name, or a value that cannot be; names the field.
    """
    before, after = FORMATS[format_of(str(document["apiVersion"]))], FORMATS[target]
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise ConfigurationError("metadata.name", "a name is required")
    kept = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if metadata.get(key)}
    if kept.get("annotations"):
        kept["annotations"] = {
            key: value for key, value in kept["annotations"].items() if key != PREFERRED_TOPOLOGY
        }
    found: dict[str, Any] = {
        "apiVersion": after.versions[0],
        "kind": "PodGroup",
        "metadata": kept,
        "spec": {},
    }
    report.add(_converted(document, before, after, found), str(metadata["name"]))
    if target == CORE and not _at(found, FORMATS[CORE].fields[LEAST]):
        _put(found, ("spec", "schedulingPolicy", "basic"), {})
    if not found["metadata"].get("annotations"):
        found["metadata"].pop("annotations", None)
    if target == "plimsoll.dev":
        try:
            PodGroupResource.model_validate(found)
        except ValidationError as exc:
            first = exc.errors()[0]
            raise ConfigurationError(".".join(map(str, first["loc"])), str(first["msg"])) from exc
    return found


def _converted(
    document: Mapping[str, Any], before: GroupFormat, after: GroupFormat, found: dict[str, Any]
) -> Iterator[Note]:
    """Carry each value over, and say what became of it."""
    for what, path in before.fields.items():
        value = _at(document, path)
        if value in (None, "", {}):
            continue
        target = after.fields.get(what)
        if target is None:
            yield dropped(path, after.without[what])
            continue
        _put(found, target, value)
        yield carried(path, _text(target), f"It is the {what}." if path[-1] != target[-1] else "")
    for name, sentence in (*before.others.items(), *EVERYWHERE.items()):
        path = tuple(name.split("."))
        if _at(document, path) is not None:
            yield dropped(path, sentence)
    if before.marks != after.marks:
        yield differs("pods", f"Pods name the group by {after.marks}, and no longer by {before.marks}.")
    if after is FORMATS[CORE]:
        yield differs("apiVersion", f"Kubernetes 1.36 serves {CORE}/v1alpha2 instead, with the same fields.")


def _text(path: Path) -> str:
    return ".".join(f"[{each}]" if isinstance(each, int) else each for each in path).replace(".[", "[")


def _at(value: Any, path: Path) -> Any:
    """The value at a path, None without one."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _put(into: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at a path; lists get as many items as it needs."""
    at: Any = into
    for part, following in pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int):
            at.extend({} for _ in range(part + 1 - len(at)))
            at = at[part]
        else:
            at = at.setdefault(part, empty)
    at[path[-1]] = value
