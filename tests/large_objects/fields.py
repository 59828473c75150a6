"""Finds every field of a kind that holds a list, a map or free text, in the schemas of the API.

The schemas are those that the development cluster serves: of built-in kinds, and of our definitions in
``crds/``. A field that a new release adds is found, and filled, without a change here.
"""

from pathlib import Path
from typing import Any

import yaml

from roadstead.schemas.fields import struct
from roadstead.schemas.schemas import ANY, STRING, TIMES, Array, Mapping, Node, Scalar, Struct

#: Steps from the object to a field: names, and "[]" for the elements of a list or map.
Steps = tuple[str, ...]

ELEMENT = "[]"

#: Identity and bookkeeping: a server limits these to 253 characters, or writes them itself.
SKIPPED = frozenset(
    {
        ("apiVersion",),
        ("kind",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "uid"),
        ("metadata", "resourceVersion"),
        ("metadata", "generateName"),
        ("metadata", "selfLink"),
        ("metadata", "managedFields"),
        ("spec", "nodeName"),
        ("spec", "schedulerName"),
    }
)

#: Texts of which an API server takes only some, and elements of lists and maps, which are filled with these.
WORDS = frozenset(
    {
        ELEMENT,
        "operator",
        "effect",
        "protocol",
        "whenUnsatisfiable",
        "restartPolicy",
        "phase",
        "key",
        "topologyKey",
        "preemptionPolicy",
        "volumeBindingMode",
        "volumeMode",
        "allocationMode",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "unhealthyPodEvictionPolicy",
    }
)

CRDS = Path(__file__).parents[2] / "crds"

#: Built-in kinds that a decision reads, with their models in the generated client.
MODELS = {
    "pods": "V1Pod",
    "nodes": "V1Node",
    "namespaces": "V1Namespace",
    "services": "V1Service",
    "replicasets": "V1ReplicaSet",
    "statefulsets": "V1StatefulSet",
    "poddisruptionbudgets": "V1PodDisruptionBudget",
    "priorityclasses": "V1PriorityClass",
    "limitranges": "V1LimitRange",
    "replicationcontrollers": "V1ReplicationController",
    "csidrivers": "V1CSIDriver",
    "volumeattachments": "V1VolumeAttachment",
    "persistentvolumes": "V1PersistentVolume",
    "persistentvolumeclaims": "V1PersistentVolumeClaim",
    "storageclasses": "V1StorageClass",
    "csinodes": "V1CSINode",
    "csistoragecapacities": "V1CSIStorageCapacity",
    "resourceclaims": "ResourceV1ResourceClaim",
    "resourceslices": "V1ResourceSlice",
    "deviceclasses": "V1DeviceClass",
}

#: Our own kinds, with the files of their definitions.
DEFINITIONS = {
    "schedulingpolicies": "plimsoll.dev_schedulingpolicies.yaml",
    "evictions": "plimsoll.dev_evictions.yaml",
    "podgroups": "plimsoll.dev_podgroups.yaml",
    "rebalancingrules": "plimsoll.dev_rebalancingrules.yaml",
}


def schema(resource: str) -> Struct:
    """The schema of a kind, by its plural name."""
    if resource in MODELS:
        return struct(MODELS[resource])
    definition = yaml.safe_load((CRDS / DEFINITIONS[resource]).read_text(encoding="utf-8"))
    (version,) = [each for each in definition["spec"]["versions"] if each["storage"]]
    made = _of_definition(version["schema"]["openAPIV3Schema"])
    assert isinstance(made, Struct)
    made.fields["metadata"] = struct("V1ObjectMeta")
    return made


def _of_definition(given: dict[str, Any]) -> Node:
    """A structural schema as the built-in kinds have it."""
    if "properties" in given:
        made = Struct("", atomic=False)
        made.fields |= {name: _of_definition(each) for name, each in given["properties"].items()}
        return made
    if "items" in given:
        return Array(_of_definition(given["items"]))
    if isinstance(given.get("additionalProperties"), dict):
        return Mapping(_of_definition(given["additionalProperties"]))
    if given.get("type") == "string" and not {"enum", "format"} & given.keys():
        return STRING
    return Scalar(given.get("type", ""), ()) if "type" in given else ANY


def large_fields(node: Node, *, each_once: bool) -> list[Steps]:
    """The paths of all lists, maps and strings; a type within itself is followed once.

    With ``each_once``, a field of a type is reached on its shortest path only: ports of containers, and not
    those of init containers as well.
    """
    found: list[Steps] = []
    seen: set[tuple[str, str]] = set()
    waiting: list[tuple[Node, Steps, tuple[Node, ...]]] = [(node, (), ())]
    while waiting:
        node, steps, within = waiting.pop(0)
        if steps in SKIPPED or node in within:
            continue
        inner = (*within, node)
        match node:
            case Struct():
                for name, each in node.fields.items():
                    key = (node.name, name)
                    if not (each_once and node.name and key in seen):
                        seen.add(key)
                        waiting.append((each, (*steps, name), inner))
            case Array():
                found.append(steps)
                waiting.append((node.items, (*steps, ELEMENT), inner))
            case Mapping():
                found.append(steps)
                waiting.append((node.values, (*steps, ELEMENT), inner))
            case Scalar() if node.go_name == "string" and node not in TIMES and steps[-1] not in WORDS:
                found.append(steps)
    return found
