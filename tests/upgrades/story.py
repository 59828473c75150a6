"""Plays an upgrade with work under way, and the way back, and judges what was kept.

The scene has one of each kind of ours, records that are over, proposals that wait for an answer, moves whose
replacement does not run yet, a surge under way and a node that is being emptied. Then the definitions are
replaced, the other operator waits as a standby, and the first one ends, politely or killed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from e2e.node_maintenances import MAINTENANCES, maintenance, until_phase
from e2e.polls import eventually
from e2e.scene import FINISHED
from e2e.test_node_maintenance import until_open
from plimsoll.api.v1alpha1.eviction_phases import Phase, may_follow

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

STRATEGY = "RemovePodsViolatingNodeTaints"
ALL = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}
#: Collections of ours below a namespace; the others belong to the cluster.
OURS = {
    "evictions": True,
    "podgroups": True,
    "rebalancingrules": True,
    "schedulingpolicies": False,
    "nodemaintenances": False,
}
API = "/apis/plimsoll.dev/v1alpha1"
#: Replicas of each Deployment that policies move, and of that on the node that is emptied.
MOVED, MOORED = {"web": 4, "single": 1, "asked": 2}, 1


@dataclass(slots=True)
class Story:
    """One cluster on which operators of two versions follow one another."""

    scene: Scene
    #: The uids of pods that ever were, by their app.
    seen: dict[str, set[str]] = field(default_factory=dict)
    #: The node of each pod that ever had one, by uid.
    places: dict[str, set[str]] = field(default_factory=dict)
    _here: str = ""
    _round: int = 0

    async def begin(self) -> None:
        """Pods on one node, and what forbids and groups some; a dry run has predicted their moves."""
        scene = self.scene
        self._here = await scene.node("first")
        listed = (await scene.speaker.request("GET", scene.path("pods"))).accepted()
        scene.speaker.begin(self._watch(listed["metadata"]["resourceVersion"]))
        await scene.scheduling()
        await scene.make(
            scene.path("podgroups", API),
            {
                "apiVersion": "plimsoll.dev/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": "gang"},
                "spec": {"minMember": 2},
            },
        )
        await scene.change_node(self._here, {"spec": {"unschedulable": True}})
        await scene.node("emptied")
        await scene.deployment("moored", MOORED)
        await scene.change_node(f"{scene.name}-emptied", {"spec": {"unschedulable": True}})
        await scene.change_node(self._here, {"spec": {"unschedulable": None}})
        await scene.deployment("kept", 1, {"role": "kept"})
        await scene.make(
            scene.path("rebalancingrules", API),
            {
                "apiVersion": "plimsoll.dev/v1alpha1",
                "kind": "RebalancingRule",
                "metadata": {"name": "kept"},
                "spec": {"podSelector": {"matchLabels": {"app": "kept"}}, "never": True},
            },
        )

    def _policy(self, role: str, **more: Any) -> Obj:
        selector = {"labelSelector": {"matchLabels": {"role": role}}}
        return self.scene.rebalancing(STRATEGY, limits=ALL, evictor=selector, **more)

    async def trouble(self) -> None:
        """The nodes of new pods get a taint, the next one does not run pods yet: moves get under way.

        New pods each time, for a pod that has moved rests, also under the other version.
        """
        scene = self.scene
        self._round += 1
        for role, replicas in MOVED.items():
            await scene.deployment(f"{role}-{self._round}", replicas, {"role": role})
        await scene.budget(f"web-{self._round}", f"web-{self._round}", minAvailable=2)
        old, self._here = self._here, await scene.node(f"next-{self._round}", runs_pods=False)
        gone = {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}}
        await scene.change_node(old, gone)
        if self._round > 1:
            await scene.change_node(f"{scene.name}-emptied", gone)
        else:
            await scene.change_node(f"{scene.name}-emptied", {"spec": {"unschedulable": None}})
            await maintenance(scene, f"{scene.name}-emptied")
            await until_phase(scene, f"{MAINTENANCES}/{scene.name}-kernel", "Draining")
            await scene.policy(self._policy("kept", mode="DryRun"), "predicted")
            await scene.policy(self._policy("web"), "moving")
            await scene.policy(self._policy("single", surge=True), "surging")
            await scene.policy(self._policy("asked", mode="Approve"), "asking")
        await eventually(self.under_way, lambda found: {"Evicted", "Surging", "Planned"} <= found)

    async def under_way(self) -> set[str]:
        """The phases of records that are not over."""
        return {*await self.scene.phases()} - FINISHED

    async def stored(self) -> dict[str, Obj]:
        """All objects of ours, by their paths; but for predictions, which later runs take away."""
        found = {}
        for plural, is_namespaced in OURS.items():
            path = self.scene.path(plural, API) if is_namespaced else f"{API}/{plural}"
            for each in await self.scene.items(path):
                if each.get("status", {}).get("phase") != "Predicted":
                    found[f"{path}/{each['metadata']['name']}"] = each
        return found

    async def places_a_pod(self, name: str) -> None:
        """The operator that leads now places a new pod."""
        await self.scene.pod(name, nodeSelector=None)
        await self.scene.until_bound(name)

    async def finish(self) -> None:
        """Pods run on the next node, proposals are approved: all moves end well, each made once."""
        await self.scene.run_pods_of(self._here)
        expected = {role: [self._here] * replicas for role, replicas in MOVED.items()}
        await eventually(self._approved, lambda nodes: nodes == expected)
        await eventually(self.under_way, lambda found: not found)

    async def open_again(self) -> None:
        """The node is empty; without the NodeMaintenance it is open again."""
        emptied = f"{self.scene.name}-emptied"
        await until_phase(self.scene, f"{MAINTENANCES}/{self.scene.name}-kernel", "Drained")
        await self.scene.speaker.request("DELETE", f"{MAINTENANCES}/{self.scene.name}-kernel")
        await until_open(self.scene, emptied)

    async def _approved(self) -> dict[str, list[str]]:
        """Approve what is proposed; the nodes of each Deployment."""
        for record in await self.scene.records():
            if record["spec"]["mode"] == "Approve" and record.get("status", {}).get("phase") == "Planned":
                await self.scene.answer(record)
        return {role: await self.scene.running(app=f"{role}-{self._round}") for role in MOVED}

    async def judge(self, before: dict[str, Obj]) -> dict[str, int]:
        """Compare with what was stored, and count; the figures, by what they count.

        Raises:
            AssertionError: A record or another object is lost, a move was made twice, or a phase follows
                another that it must not follow.
        """
        after = await self.stored()
        assert before.keys() <= after.keys(), f"lost: {before.keys() - after.keys()}"
        changed = {path: (each["spec"], after[path]["spec"]) for path, each in before.items()}
        unlike = {path: pair for path, pair in changed.items() if _asked(pair[0]) != _asked(pair[1])}
        assert not unlike, f"other specs than before: {unlike}"
        moves: Counter[str] = Counter()
        pods: Counter[str] = Counter()
        for record in await self.scene.records():
            told = [Phase(each["phase"]) for each in record.get("status", {}).get("transitions", ())]
            steps = list(zip([None, *told], told, strict=False))
            assert all(may_follow(earlier, later) for earlier, later in steps), told
            if {Phase.EVICTED, Phase.SURGING} & {*told}:
                pods[record["spec"]["pod"]["uid"]] += 1
                moves[record["spec"]["pod"]["name"].rsplit("-", 2)[0]] += 1
        assert set(pods.values()) == {1}, f"moved twice: {pods}"
        assert all(len(places) == 1 for places in self.places.values()), "a pod had two nodes"
        rounds = range(1, self._round + 1)
        wanted = {"moored": MOORED, **{f"{role}-{each}": MOVED[role] for role in MOVED for each in rounds}}
        made = {app: len(self.seen[app]) - replicas for app, replicas in wanted.items()}
        assert made == {app: moves[app] for app in made}, f"new pods {made}, moves that are recorded {moves}"
        return {
            "objects": len(before),
            "records": len(await self.scene.records()),
            "moves": sum(moves.values()),
        }

    async def _watch(self, version: str) -> None:
        path = self.scene.path("pods")
        while True:  # a connection lasts five minutes at most
            with suppress(TimeoutError):
                async with aclosing(self.scene.speaker.watch(path, version)) as events:  # type: ignore[type-var] # known in this test
                    async for event in events:
                        self._note(event["object"])
                        version = event["object"]["metadata"]["resourceVersion"]

    def _note(self, pod: Obj) -> None:
        uid = pod["metadata"]["uid"]
        if app := pod["metadata"].get("labels", {}).get("app"):
            self.seen.setdefault(app, set()).add(uid)
        if node := pod["spec"].get("nodeName"):
            self.places.setdefault(uid, set()).add(node)


def _asked(spec: Obj) -> Obj:
    """What a spec asks for, without what the operator keeps of a surge while it goes on."""
    return {name: value for name, value in spec.items() if name != "surge"}


async def until_leading(operator: Operator) -> None:
    """Wait until it is the leader."""
    await eventually(lambda: asyncio.to_thread(lambda: operator.leads))
