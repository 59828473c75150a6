"""Publishes the devices of simulated nodes in ResourceSlices, as a vendor's driver does.

The annotation ``roadstead.test/devices`` of a node requests them: a number, such as "8", or a list of
``count=8,model=h100,memory=80Gi,numa=2``. Devices differ in these attributes of the driver's domain:

=========  =====================================================================================
``model``  of the annotation
``model``  from the annotation
``index``  counted from 0
``numa``   the NUMA node; the devices are spread in blocks over the number of nodes in the annotation
``link``   the group with a fast link, such as "link-1": four consecutive devices
=========  =====================================================================================

The pool is named after the node. Taints that are written into a slice stay. When the annotation changes, the
pool's generation is incremented, as a driver does after a change of hardware; devices that are in use are not
waited for.

Source: kubernetes v1.36 ``staging/src/k8s.io/dynamic-resource-allocation/resourceslice``,
``test/e2e/dra/test-driver``.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roadstead.controllers.context import BY_NODE
from roadstead.kubelets.nodes import DEVICES, kubelet_of
from roadstead.schemas import quantities
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

DRIVER = "gpu.example.com"
CLASSES, SLICES = "deviceclasses.resource.k8s.io", "resourceslices.resource.k8s.io"
EXTENDED = "example.com/gpu"
"""The extended resource that a pod may request instead of a claim."""
COMPONENT = "gpu-driver"
EXAMPLE = "count=8,model=h100,memory=80Gi,numa=2"
A_SLICE: Final = 128
"""Maximum number of devices of one slice."""
A_TAINTED_SLICE: Final = 64
"""Maximum number of devices of one slice, if devices of the pool have taints."""
_LINKED = 4
_NAMES = uuid.UUID("6f2b0d4e-3f2a-4f2e-8e57-7a3f4d1c9b10")


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices requested for a node.

    Attributes:
        count: the number of devices.
        model: the model of each.
        memory: the memory of each, a quantity.
        numa: NUMA nodes over which they are spread.
    """

    count: int
    model: str = "h100"
    memory: str = "80Gi"
    numa: int = 2

    def listed(self, node: str) -> list[Obj]:
        """The devices of a node, as in a slice."""
        block = -(-self.count // self.numa)
        return [
            {
                "name": f"gpu-{index}",
                "attributes": {
                    "model": {"string": self.model},
                    "index": {"int": index},
                    "numa": {"int": index // block},
                    "link": {"string": f"link-{index // _LINKED}"},
                    "uuid": {"string": str(uuid.uuid5(_NAMES, f"{node}/{index}"))},
                },
                "capacity": {"memory": {"value": self.memory}},
            }
            for index in range(self.count)
        ]


def devices_of(text: str) -> Devices:
    """The devices that an annotation requests.

    Raises:
        ValueError: it is neither a number nor such a list.
    """
    if text.strip().isdigit():
        return Devices(int(text))
    given = dict(part.split("=", 1) for part in text.replace(" ", "").split(",") if "=" in part)
    count, numa = given.pop("count", ""), given.pop("numa", "2")
    if not count.isdigit() or not numa.isdigit() or numa == "0" or given.keys() - {"model", "memory"}:
        raise ValueError(f"{text!r} is neither a number nor a list such as {EXAMPLE}")
    quantities.milli(given.get("memory", "0"))
    return Devices(int(count), numa=int(numa), **given)


class DeviceDriver:
    """Publishes the devices of nodes with the annotation."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to nodes and to the slices of this driver."""
        api = self._context.api
        slices = api.store.collection(SLICES)
        if not slices.has_index(BY_NODE):
            slices.add_index(BY_NODE, lambda one: [one["spec"].get("nodeName", "")])
        api.subscribe("nodes", self._node_changed)
        api.subscribe(SLICES, self._slice_changed)
        for node in api.list("nodes"):
            self._node_changed("ADDED", node, None)

    def _node_changed(self, kind: EventType, node: Obj, old: Obj | None) -> None:
        """Queue a node whose annotation has changed."""
        before = _wish(old) if old is not None and kind != "DELETED" else ""
        if kind != "DELETED" and _wish(node) == before:
            return
        if kind == "DELETED" and not _wish(node):
            return
        self._context.queue.add(self.reconcile, node["metadata"]["name"])

    def _slice_changed(self, kind: EventType, one: Obj, _old: Obj | None) -> None:
        """Queue the node of a slice that others have changed or deleted."""
        if kind != "ADDED" and one["spec"].get("driver") == DRIVER:
            self._context.queue.add(self.reconcile, one["spec"].get("nodeName", ""))

    def reconcile(self, name: str) -> None:
        """Publish the devices of a node, or withdraw them."""
        node = self._context.find("nodes", name)
        found = [
            entry.obj
            for entry in self._context.api.store.collection(SLICES).indexed(BY_NODE, name)
            if entry.obj["spec"]["driver"] == DRIVER
        ]
        devices: list[Obj] = []
        if node is not None and (text := _wish(node)):
            try:
                devices = devices_of(text).listed(name)
            except ValueError as error:
                self._context.events.record(
                    COMPONENT, node, "UnknownDevices", f"{DEVICES}: {error}", "Warning"
                )
        if node is not None and devices:
            self._offer_class()
        self._publish(node, devices, found)

    def _offer_class(self) -> None:
        """Create the class of the driver's devices, unless it exists."""
        api = self._context.api
        if api.find(CLASSES, None, DRIVER) is None:
            selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
            spec = {"selectors": [selector], "extendedResourceName": EXTENDED}
            api.create(CLASSES, {"metadata": {"name": DRIVER}, "spec": spec})

    def _publish(self, node: Obj | None, devices: list[Obj], found: list[Obj]) -> None:
        """Write the slices of a node's pool; a changed pool gets a new generation."""
        api = self._context.api
        devices = _with_taints(devices, found)
        most = A_TAINTED_SLICE if any("taints" in one for one in devices) else A_SLICE
        parts = [devices[at : at + most] for at in range(0, len(devices), most)]
        published = {one["metadata"]["name"]: one for one in found}
        generation = max((one["spec"]["pool"]["generation"] for one in found), default=0)
        if node is None or not parts:
            self._withdraw(published.values())
            return
        wanted = _slices(node, parts, max(generation, 1))
        if all(_same(published.get(one["metadata"]["name"]), one) for one in wanted) and len(wanted) == len(
            published
        ):
            return
        wanted = _slices(node, parts, generation + 1)
        for one in wanted:
            was = published.pop(one["metadata"]["name"], None)
            if was is None:
                api.create(SLICES, one)
            else:
                api.update(SLICES, {**was, "spec": one["spec"]})
        self._withdraw(published.values())

    def _withdraw(self, slices: Iterable[Obj]) -> None:
        for one in list(slices):
            try:
                self._context.api.delete(SLICES, None, one["metadata"]["name"])
            except StatusError as error:
                if error.code != 404:
                    raise


def _wish(node: Obj) -> str:
    """The annotation of a node with a simulated kubelet."""
    text: str = (node["metadata"].get("annotations") or {}).get(DEVICES, "")
    return text if kubelet_of(node) else ""


def _with_taints(devices: list[Obj], found: Iterable[Obj]) -> list[Obj]:
    """The devices with the taints that other clients have written into their slices."""
    taints = {
        device["name"]: device["taints"]
        for one in found
        for device in one["spec"].get("devices") or ()
        if device.get("taints")
    }
    return [{**one, "taints": taints[one["name"]]} if one["name"] in taints else one for one in devices]


def _same(published: Obj | None, wanted: Obj) -> bool:
    return published is not None and published["spec"] == wanted["spec"]


def _slices(node: Obj, parts: list[list[Obj]], generation: int) -> list[Obj]:
    """The slices of a node's pool."""
    meta = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": meta["name"], "uid": meta["uid"], "controller": True}
    pool = {"name": meta["name"], "generation": generation, "resourceSliceCount": len(parts)}
    return [
        {
            "metadata": {"name": f"{meta['name']}-{DRIVER}-{number}", "ownerReferences": [owner]},
            "spec": {"driver": DRIVER, "nodeName": meta["name"], "pool": dict(pool), "devices": part},
        }
        for number, part in enumerate(parts)
    ]
