"""Writes the largest object for one field: as many elements, or as long a text, as fit into a request.

Elements have the fields that the operator's model reads, each with a name of its own: what costs something is
names. Where an API server takes words only, the words below are used; where it would refuse the rest of an
object (a volume with two sources), the object is larger than any that it accepts.
"""

import json
import types
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Map
from functools import cache
from itertools import count
from typing import Any, Union, get_args, get_origin

import msgspec

from large_objects.fields import ELEMENT, Steps, schema
from plimsoll.cluster.watched_resources import DEVICES, WATCHED
from roadstead.schemas.schemas import AMOUNT, QUANTITY, TIMES, Array, Mapping, Node, Scalar, Struct

#: Bytes of the largest object that etcd stores.
LARGEST = 1_500_000

#: Bytes of all annotations of an object.
MOST_ANNOTATIONS = 262_144

KINDS: Map[str, type] = {each.name: each.kind for each in (*WATCHED, *DEVICES)}

#: Texts of which an API server takes only some, by field.
WORDS = {
    "operator": "NotIn",
    "effect": "NoSchedule",
    "protocol": "TCP",
    "whenUnsatisfiable": "ScheduleAnyway",
    "hostIP": "0.0.0.0",
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Ignore",
    "restartPolicy": "Always",
    "phase": "Pending",
    "status": "True",
    "allocationMode": "ExactCount",
    "volumeMode": "Filesystem",
    "accessModes": "ReadWriteOnce",
    "driver": "gpu.example.com",
    "deviceClassName": "gpu.example.com",
    "expression": "true",
    "minAvailable": 1,
    "maxUnavailable": 1,
    "preemptionPolicy": "PreemptLowerPriority",
}

#: The same by type and field.
WORDS_OF = {("V1Toleration", "operator"): "Equal"}

#: Elements of lists and maps of devices' kinds that an API server accepts: resource.k8s.io/v1 of Kubernetes
#: v1.36, types.go; tried on kube-apiserver 1.36.2.
MOST_ELEMENTS = {
    "requests": 32,
    "constraints": 32,
    "config": 32,
    "firstAvailable": 8,
    "selectors": 32,
    "tolerations": 16,
    "devices": 128,
    "sharedCounters": 8,
    "counters": 32,
    "consumesCounters": 2,
    "results": 32,
    "reservedFor": 256,
    "attributes": 32,
    "capacity": 32,
    "validValues": 10,
    "taints": 16,
    "bindingConditions": 4,
    "bindingFailureConditions": 4,
}

#: Characters of texts that an API server limits, by type and field: tried on kube-apiserver 1.36.2. Results
#: of an allocation and the status of its devices name what slices do, within the same limits.
LONGEST_TEXTS = {
    **dict.fromkeys(
        (
            ("V1Container", "name"),
            ("V1PodResourceClaim", "name"),
            ("V1Volume", "name"),
            ("V1Toleration", "value"),
            ("V1Taint", "value"),
            ("V1CSIVolumeSource", "driver"),
            ("V1CSIPersistentVolumeSource", "driver"),
            ("V1CSINodeDriver", "name"),
            ("V1VolumeAttachmentSpec", "attacher"),
            ("V1DeviceRequest", "name"),
            ("V1DeviceSubRequest", "name"),
            ("V1DeviceToleration", "value"),
            ("V1DeviceRequestAllocationResult", "device"),
            ("V1DeviceRequestAllocationResult", "driver"),
            ("V1AllocatedDeviceStatus", "device"),
            ("V1AllocatedDeviceStatus", "driver"),
            ("V1ResourceSliceSpec", "driver"),
            ("V1Device", "name"),
            ("V1DeviceTaint", "value"),
            ("V1CounterSet", "name"),
            ("V1DeviceCounterConsumption", "counterSet"),
        ),
        63,
    ),
    **dict.fromkeys(
        (
            ("V1PodResourceClaim", "resourceClaimName"),
            ("V1PodResourceClaim", "resourceClaimTemplateName"),
            ("V1PersistentVolumeSpec", "storageClassName"),
            ("V1PersistentVolumeSpec", "volumeAttributesClassName"),
            ("V1PersistentVolumeClaimSpec", "storageClassName"),
            ("V1PersistentVolumeClaimSpec", "volumeAttributesClassName"),
            ("V1CSIStorageCapacity", "storageClassName"),
            ("V1VolumeAttachmentSource", "persistentVolumeName"),
            ("V1ExactDeviceRequest", "deviceClassName"),
            ("V1DeviceSubRequest", "deviceClassName"),
            ("V1DeviceRequestAllocationResult", "pool"),
            ("V1AllocatedDeviceStatus", "pool"),
            ("V1ResourcePool", "name"),
            ("V1Device", "nodeName"),
        ),
        253,
    ),
    # Not tried there: roadstead refuses longer ones, as upstream's validation.go does.
    ("V1PodStatus", "nominatedNodeName"): 253,
    ("V1PodSchedulingGroup", "podGroupName"): 253,
    ("V1PodSchedulingGate", "name"): 317,
    ("V1LimitRangeItem", "type"): 317,
    ("V1StorageClass", "provisioner"): 317,
    ("V1DeviceClassSpec", "extendedResourceName"): 317,
    ("V1DeviceRequestAllocationResult", "request"): 127,
    ("V1DeviceRequestAllocationResult", "shareID"): 36,
    ("V1AllocatedDeviceStatus", "shareID"): 36,
    ("V1DeviceConstraint", "matchAttribute"): 96,
    ("V1DeviceConstraint", "distinctAttribute"): 96,
    ("V1DeviceAttribute", "string"): 64,
    ("V1DeviceAttribute", "version"): 64,
    ("V1CELDeviceSelector", "expression"): 10_240,
}

#: Types with many fields of which an element needs only some.
SLIM = {
    "V1NodeSelectorTerm": {"matchExpressions"},
    "V1Container": {"name", "image", "resources"},
    "V1EphemeralContainer": {"name", "image"},
    "V1Volume": {"name", "persistentVolumeClaim"},
    "V1LabelSelector": {"matchLabels"},
    "V1ContainerStatus": {"name"},
}

#: Levels below an element that are filled.
DEEPEST = 4


class Writer:
    """Writes objects of one kind; names differ from those of all other writers' objects.

    Args:
        resource: The kind's plural name.
        prefix: The beginning of all its names.
        amount: What each resource is requested or offered.
    """

    def __init__(self, resource: str, prefix: str, amount: str = "0") -> None:
        self.schema = schema(resource)
        self.model = KINDS.get(resource)
        self._prefix, self._amount = prefix, amount
        self._numbers = count()

    def write(self, base: dict[str, Any], steps: Steps, size: int) -> dict[str, Any]:
        """``base`` with so many bytes in the field at ``steps``, as JSON."""
        given: dict[str, Any] = json.loads(json.dumps(base))
        self._fill(self.schema, self.model, given, steps, size)
        return given

    def _fill(self, node: Node, model: Any, given: Any, steps: Steps, size: int, above: str = "") -> None:
        """Fill a field below ``given``, and write what leads there if it is missing."""
        step, rest = steps[0], steps[1:]
        inner, known = self._below(node, model, step)
        key: Any = step
        if step == ELEMENT:
            if not given:
                one = self._value(inner, known, above, 0)
                given.append(one) if isinstance(given, list) else given.update({self._key(): one})
            key = 0 if isinstance(given, list) else next(iter(given))
        if not rest:
            longest = LONGEST_TEXTS.get((node.name, step), size) if isinstance(node, Struct) else size
            given[key] = self._many(inner, known, step, min(size, longest))
            return
        if isinstance(given, dict) and not isinstance(given.get(key), (dict, list)):
            given[key] = [] if isinstance(inner, Array) else {}
        self._fill(inner, known, given[key], rest, size, step)

    def _many(self, node: Node, model: Any, name: str, size: int) -> Any:
        if isinstance(node, Array):
            inner, known = self._below(node, model, ELEMENT)
            values = iter(lambda: self._value(inner, known, name, 0, many=True), None)
            return list(_until(size, values, lambda one: one))
        if isinstance(node, Mapping):
            size = min(size, MOST_ANNOTATIONS) if name == "annotations" else size
            inner, known = self._below(node, model, ELEMENT)
            entries = iter(lambda: (self._key(), self._value(inner, known, name, 0)), None)
            return dict(_until(size, entries, lambda entry: dict([entry])))
        return "x" * size

    def _below(self, node: Node, model: Any, step: str) -> tuple[Node, Any]:
        """The type and the model of a part."""
        match node:
            case Struct():
                return node.fields[step], _field(model, step)
            case Array():
                return node.items, _element(model)
            case Mapping():
                return node.values, _element(model)
        raise ValueError(step)

    def _value(  # noqa: PLR0911 - one for each type of field
        self, node: Node, model: Any, name: str, depth: int, *, many: bool = False
    ) -> Any:
        """One value with names of its own."""
        match node:
            case Struct():
                return self._struct(node, model, name, depth)
            case Array():
                inner, known = self._below(node, model, ELEMENT)
                return [self._value(inner, known, name, depth + 1)]
            case Mapping():
                inner, known = self._below(node, model, ELEMENT)
                if inner in (AMOUNT, QUANTITY):
                    return {"cpu": "1m"}
                return {self._key(): self._value(inner, known, name, depth + 1)}
        if node in (AMOUNT, QUANTITY):
            return self._amount
        if isinstance(node, Scalar) and int in node.types:
            return 1 + (next(self._numbers) % 60_000 if name in ("hostPort", "containerPort") else 0)
        if isinstance(node, Scalar) and bool in node.types:
            return False
        if name in WORDS and not many:
            return WORDS[name]
        return self._name()

    def _struct(self, node: Struct, model: Any, above: str, depth: int) -> dict[str, Any]:
        fields = _fields(model)
        made = {}
        for name, inner in node.fields.items():
            is_known = name in fields or (not fields and isinstance(inner, Scalar))
            if name in SLIM.get(node.name, (name,)) and is_known and depth < DEEPEST:
                if inner in TIMES:
                    continue
                made[name] = self._value(inner, fields.get(name), name, depth + 1)
            if name in made and (node.name, name) in WORDS_OF:
                made[name] = WORDS_OF[node.name, name]
        if above == "matchFields":
            made["key"] = "metadata.name"
        return made

    def _name(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

    def _key(self) -> str:
        return f"{self._prefix}.io/{next(self._numbers)}"


def _until(size: int, made: Iterator[Any], written: Callable[[Any], Any]) -> Iterator[Any]:
    """As many of these as fit into so many bytes of JSON, one at least."""
    for each in made:
        yield each
        size -= len(json.dumps(written(each), separators=(",", ":"))) + 1
        if size <= 0:
            return


def _types(model: Any) -> list[Any]:
    if get_origin(model) in (Union, types.UnionType):
        return [inner for each in get_args(model) for inner in _types(each)]
    return [model]


@cache
def _fields(model: Any) -> dict[str, Any]:
    for each in _types(model):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return {field.encode_name: field.type for field in msgspec.structs.fields(each)}
    return {}


def _field(model: Any, step: str) -> Any:
    return _fields(model).get(step)


def _element(model: Any) -> Any:
    for each in _types(model):
        if get_origin(each) in (tuple, list):
            return get_args(each)[0]
        if get_origin(each) is dict:
            return get_args(each)[1]
    return None


def is_read(resource: str, steps: Steps) -> bool:
    """Whether the operator's model has the field."""
    model: Any = KINDS.get(resource)
    for step in steps:
        model = _element(model) if step == ELEMENT else _field(model, step)
        if model is None:
            return False
    return True
