"""Devices that are parts of others or have taints, claims of all kinds, and drivers that publish again."""

from __future__ import annotations

from typing import Any

from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import POLICIES, policy
from simulation.world.devices import SLICES, TEMPLATES
from simulation.world.part import Part

DRIVER = "parts.example.com"
CLASSES = "deviceclasses.resource.k8s.io"

#: A device as a whole or as two halves: how much of its memory each takes, and to which link it belongs.
DEVICES = {"whole": ("8", 0), "half-0": ("4", 0), "half-1": ("4", 1)}

#: Effects of taints. ``None`` only informs.
EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "None")


def _asked(count: int = 1, *, parts: bool = True, **more: Any) -> Obj:
    """Devices that are parts, or whole ones."""
    expression = f'device.attributes["{DRIVER}"].isPart == {str(parts).lower()}'
    return {
        "deviceClassName": DRIVER,
        "count": count,
        "selectors": [{"cel": {"expression": expression}}],
        **more,
    }


def _exactly(count: int = 1, *, parts: bool = True, **more: Any) -> Obj:
    return {"name": "r", "exactly": {"allocationMode": "ExactCount", **_asked(count, parts=parts, **more)}}


_ANY = {"operator": "Exists"}
_WORN = {"key": "worn", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
_LINK = f"{DRIVER}/link"

#: Claims, by what is special about them.
KINDS: dict[str, Obj] = {
    "part": {"requests": [_exactly()]},
    "whole": {"requests": [_exactly(parts=False)]},
    "tolerant": {"requests": [_exactly(tolerations=[_ANY])]},
    "lenient": {"requests": [_exactly(tolerations=[_WORN])]},
    "in-turn": {
        "requests": [
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "whole", **_asked(parts=False)},
                    {"name": "halves", **_asked(2)},
                    {"name": "half", **_asked()},
                ],
            }
        ]
    },
    "too-large-first": {
        "requests": [
            {"name": "r", "firstAvailable": [{"name": "many", **_asked(32)}, {"name": "half", **_asked()}]}
        ]
    },
    "all": {"requests": [{"name": "r", "exactly": {**_asked(parts=False), "allocationMode": "All"}}]},
    "linked": {"requests": [_exactly(2)], "constraints": [{"matchAttribute": _LINK}]},
    "apart": {
        "requests": [_exactly(2)],
        "constraints": [{"distinctAttribute": _LINK, "requests": ["r"]}],
    },
    "two": {"requests": [_exactly(), {**_exactly(), "name": "s"}]},
}
del KINDS["all"]["requests"][0]["exactly"]["count"]


class KindsOfDevices(Part):
    """Workloads whose claims differ in kind, and taints and generations of devices that come and go."""

    def begin(self) -> None:
        """The class, devices of most nodes, a template of each kind, and a policy that moves pods."""
        expression = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        self.create(CLASSES, DRIVER, spec={"selectors": [expression]})
        for each in self.cluster.objects("nodes"):
            if self.random.random() < 0.8:
                self._publish(each["metadata"]["name"], 1)
        for kind, devices in KINDS.items():
            self.create(TEMPLATES, f"kind-{kind}", spec={"spec": {"devices": copied(devices)}})
        for kind in self.random.sample(list(KINDS), 4):
            claims = [{"name": "part", "resourceClaimTemplateName": f"kind-{kind}"}]
            self.deployment(f"kind-{kind}", self.random.randint(1, 2), resourceClaims=claims)
        spec: Obj = {
            "mode": "Enforce",
            "planner": self.random.choice(("Proven", "Proven", "Optimal")),
            "schedule": {"intervalSeconds": 10},
            "strategies": [
                {"name": "RemovePodsViolatingNodeTaints"},
                {"name": self.random.choice(("MakeRoomForPending", "RemoveDuplicates"))},
            ],
            "evictor": {"minReplicas": 1},
        }
        self.api.create(POLICIES, policy("kinds", rebalancing=spec))

    def act(self) -> None:
        """A device gets a taint or loses it, a driver publishes again, a workload changes its size."""
        self.random.choice((self._taint, self._taint, self._lose, self._publish_again, self._resize))()

    def end(self) -> None:
        """Each pool is whole, and no device has a taint."""
        for name in sorted({each["spec"]["nodeName"] for each in self._slices()}):
            self._publish(name, self._withdrawn(name) + 1)

    def container(self) -> Obj:
        """A small one: devices are what is scarce."""
        requests = {"cpu": "100m", "memory": "64Mi"}
        return {"name": "main", "image": "app:1", "resources": {"requests": requests}}

    # -- drivers -------------------------------------------------------------------------------------------

    def _slices(self) -> list[Obj]:
        return [copied(each) for each in self.cluster.objects(SLICES) if each["spec"]["driver"] == DRIVER]

    def _publish(self, node: str, generation: int) -> None:
        """A slice with the devices of a node, and one with the counters that they draw on."""
        pool = {"name": f"parts-{node}", "generation": generation, "resourceSliceCount": 2}
        common: Obj = {"driver": DRIVER, "nodeName": node, "pool": pool}
        devices = [
            {
                "name": name,
                "attributes": {"link": {"int": link}, "isPart": {"bool": name != "whole"}},
                "consumesCounters": [{"counterSet": "memory", "counters": {"memory": {"value": amount}}}],
            }
            for name, (amount, link) in DEVICES.items()
        ]
        counters = [{"name": "memory", "counters": {"memory": {"value": "8"}}}]
        self.create(SLICES, self.name("parts"), spec={**common, "devices": devices})
        self.create(SLICES, self.name("parts"), spec={**common, "sharedCounters": counters})

    def _withdrawn(self, node: str) -> int:
        """Delete the slices of a node; the generation that they had."""
        mine = [each for each in self._slices() if each["spec"]["nodeName"] == node]
        for each in mine:
            self.api.delete(SLICES, None, each["metadata"]["name"])
        return max(int(each["spec"]["pool"]["generation"]) for each in mine)

    def _publish_again(self) -> None:
        """The next generation comes when the last one has gone, or before that."""
        mine = self._slices()
        if not mine:
            return
        spec = self.random.choice(mine)["spec"]
        if self.random.random() < 0.5:
            self._publish(spec["nodeName"], self._withdrawn(spec["nodeName"]) + 1)
        else:
            generation = max(
                one["spec"]["pool"]["generation"]
                for one in mine
                if one["spec"]["nodeName"] == spec["nodeName"]
            )
            self._publish(spec["nodeName"], generation + 1)

    def _lose(self) -> None:
        """A pool is not whole any more: its devices are gone."""
        mine = [each for each in self._slices() if each["spec"].get("devices")]
        if mine:
            self.api.delete(SLICES, None, self.random.choice(mine)["metadata"]["name"])

    def _taint(self) -> None:
        """A device is worn or broken; or none of its slice is any more."""
        mine = [each for each in self._slices() if each["spec"].get("devices")]
        if not mine:
            return
        chosen = self.random.choice(mine)
        devices = chosen["spec"]["devices"]
        if any(each.pop("taints", None) for each in devices):
            self.api.update(SLICES, chosen)
            return
        key = self.random.choice(("worn", "broken"))
        taint = {"key": key, "value": "yes", "effect": self.random.choice(EFFECTS)}
        self.random.choice(devices)["taints"] = [taint]
        self.api.update(SLICES, chosen)

    # -- people --------------------------------------------------------------------------------------------

    def _resize(self) -> None:
        mine = [
            each
            for each in self.cluster.objects("deployments.apps")
            if each["metadata"]["name"].startswith("kind-")
        ]
        if mine:
            chosen = copied(self.random.choice(mine))
            chosen["spec"]["replicas"] = self.random.randint(0, 3)
            self.api.update("deployments.apps", chosen)
