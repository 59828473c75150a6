"""Each node's volumes for the claims of a pod, as somebody would choose them there with a list of all."""

from __future__ import annotations

from random import Random
from typing import Any

from plimsoll.framework import CycleState, Snapshot
from plimsoll.model.columns.cluster import Cluster
from plimsoll.plugins.volume_binding import (  # type: ignore[attr-defined] # known to exist in this test
    AFFINITY,
    NO_SPACE,
    NOTHING_TO_BIND,
    VOLUME_MISSING,
    VolumeBinding,
    VolumeBindingArgs,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plugins.stored import ZONE, a_capacity, a_claim, a_class, a_driver, a_volume, mounting

PLUGIN = VolumeBinding(VolumeBindingArgs())
ZONES = {"n0": "a", "n1": "b", "n2": "c", "n3": "a"}
SIZES = (1, 2, 2, 3, 5)
MODES = (["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"], ["ReadWriteMany"])
CLASSES: dict[str, dict[str, Any]] = {
    "slow": {},
    "local": {"provisioner": "kubernetes.io/no-provisioner"},
    "zoned": {
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "c"]}]}],
    },
}


class Storage:
    """Claims, volumes and capacities, as documents and in a cluster."""

    def __init__(self, random: Random) -> None:
        self.cluster: Cluster = a_cluster([a_node(name, labels={ZONE: zone}) for name, zone in ZONES.items()])
        for name, more in CLASSES.items():
            a_class(self.cluster, name, **more)
        self.checks_room = random.random() < 0.6
        a_driver(self.cluster, storage_capacity=self.checks_room)
        self.claims = [self.put_claim(random, f"c{number}") for number in range(random.randint(1, 3))]
        self.volumes = [
            self.put_volume(random, f"v{number}") for number in random.sample(range(6), random.randint(1, 6))
        ]
        self.rooms: list[tuple[str, int | None, int | None]] = []
        for number in range(random.randint(0, 3)):
            zone, room = random.choice("abc"), random.choice([None, *SIZES])
            most = random.choice([None, None, *SIZES])
            self.rooms.append((zone, room, most))
            sizes = {"capacity": room, "maximumVolumeSize": most}
            written = {key: f"{size}Gi" for key, size in sizes.items() if size is not None}
            a_capacity(self.cluster, f"room{number}", zone=zone, **written)

    def put_claim(self, random: Random, name: str) -> dict[str, Any]:
        claim: dict[str, Any] = {
            "name": name,
            "size": random.choice(SIZES),
            "class": random.choice(["slow", "slow", *CLASSES]),
            "modes": random.choice(MODES[:2]),
            "disk": random.choice([None, None, "ssd"]),
            "node": random.choice([""] * 20 + [*ZONES, "gone"]),
            "volume": random.choice([""] * 12 + ["v0", "v1", "absent"]),
            "mode": random.choice(["Filesystem"] * 8 + ["Block"]),
            "attributes": random.choice([None] * 6 + ["", "fast"]),
        }
        selected = {"volume.kubernetes.io/selected-node": claim["node"]} if claim["node"] else {}
        selector = {"matchLabels": {"disk": claim["disk"]}} if claim["disk"] else None
        a_claim(
            self.cluster,
            name,
            size=f"{claim['size']}Gi",
            storage_class=claim["class"],
            volume=claim["volume"],
            annotations=selected,
            accessModes=claim["modes"],
            selector=selector,
            volumeMode=claim["mode"],
            volumeAttributesClassName=claim["attributes"],
        )
        return claim

    def put_volume(self, random: Random, name: str) -> dict[str, Any]:
        volume: dict[str, Any] = {
            "name": name,
            "size": random.choice(SIZES),
            "class": random.choice(["slow", "slow", *CLASSES]),
            "modes": random.choice(MODES),
            "disk": random.choice([None, "ssd"]),
            "zones": random.choice([(), (), ("a",), ("b",), ("a", "c")]),
            "phase": random.choice(["Available"] * 4 + ["Released"]),
            "for": random.choice([""] * 5 + ["c0", "c1", "other"]),
            "mode": random.choice(["Filesystem"] * 8 + ["Block"]),
            "attributes": random.choice([None] * 6 + ["", "fast"]),
        }
        reserved = {"claimRef": {"namespace": "default", "name": volume["for"]}} if volume["for"] else {}
        a_volume(
            self.cluster,
            name,
            size=f"{volume['size']}Gi",
            storage_class=volume["class"],
            zones=volume["zones"],
            labels={"disk": volume["disk"]} if volume["disk"] else {},
            accessModes=volume["modes"],
            volumeMode=volume["mode"],
            volumeAttributesClassName=volume["attributes"],
            phase=volume["phase"],
            **reserved,
        )
        return volume

    # -- somebody with a list --------------------------------------------------------------------------

    def reaches(self, volume: dict[str, Any], node: str) -> bool:
        return not volume["zones"] or ZONES[node] in volume["zones"]

    def may_have(self, claim: dict[str, Any]) -> list[dict[str, Any]]:
        """The volumes that the claim may take, the smallest first; if one waits for it, that one alone."""
        fitting = [
            each
            for each in self.volumes
            if each["class"] == claim["class"]
            and each["for"] in {"", claim["name"]}
            and each["size"] >= claim["size"]
            and each["mode"] == claim["mode"]
            and (each["attributes"] or "") == (claim["attributes"] or "")
        ]
        fitting.sort(key=lambda each: (each["size"], each["name"]))
        mine = [each for each in fitting if each["for"]]
        return mine[:1] or [
            each
            for each in fitting
            if each["phase"] == "Available"
            and claim["disk"] in {None, each["disk"]}
            and set(claim["modes"]) <= set(each["modes"])
        ]

    def makes(self, claim: dict[str, Any], node: str) -> int:
        """Why no volume can be made for the claim on a node; 0 if one can."""
        zone = ZONES[node]
        if claim["class"] == "local" or (claim["class"] == "zoned" and zone == "b"):
            return NOTHING_TO_BIND
        if not self.checks_room:
            return 0
        if claim["class"] != "slow":
            return NO_SPACE
        rooms = [(most if most is not None else room) for where, room, most in self.rooms if where == zone]
        return 0 if any(room is not None and room >= claim["size"] for room in rooms) else NO_SPACE

    def expected(self, node: str) -> tuple[int, dict[str, str]]:
        """The code of a node, and what each waiting claim gets there."""
        code, taken = 0, dict[str, str]()
        for claim in self.claims:
            if claim["volume"]:
                volume = next((each for each in self.volumes if each["name"] == claim["volume"]), None)
                if volume is None:
                    code = code or VOLUME_MISSING
                elif not self.reaches(volume, node):
                    code = code or AFFINITY
        waiting = [each for each in self.claims if not each["volume"]]
        assigned = [each for each in waiting if each["node"]]
        refused = NOTHING_TO_BIND if any(each["node"] != node for each in assigned) else 0
        to_make = [*assigned]
        for claim in sorted((each for each in waiting if not each["node"]), key=lambda each: each["size"]):
            free = [
                each["name"]
                for each in self.may_have(claim)
                if self.reaches(each, node) and each["name"] not in taken.values()
            ]
            taken[claim["name"]] = free[0] if free else ""
            to_make += [] if free else [claim]
        for claim in to_make:
            refused = refused or self.makes(claim, node)
        return code | refused, taken | {each["name"]: "" for each in assigned}


def test_volumes_are_chosen_on_each_node_as_from_a_list() -> None:
    codes: set[int] = set()
    chosen = 0
    for seed in range(250):
        storage = Storage(Random(seed))
        state, snapshot = CycleState(), Snapshot(storage.cluster)
        pod = storage.cluster.templates.info(
            a_pod(volumes=mounting(*(each["name"] for each in storage.claims)))
        )
        assert PLUGIN.pre_filter(state, pod, snapshot).is_success

        found = PLUGIN.filter(state, pod, snapshot).tolist()

        for row, code in enumerate(found):
            node = storage.cluster.nodes[row].name
            expected, volumes = storage.expected(node)
            assert code == expected, (seed, node)
            codes.add(code)
            if code == 0:
                assert PLUGIN.volumes_on(state, snapshot, row) == volumes, (seed, node)
                chosen += any(volumes.values())
    assert codes >= {0, VOLUME_MISSING, AFFINITY, NOTHING_TO_BIND, NO_SPACE}
    assert chosen > 20
