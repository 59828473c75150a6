"""Pods that leave by EvictionRequest, some with a responder that takes its time."""

from __future__ import annotations

from roadstead.controllers.ownership import key_of
from roadstead.eviction_requests import offer_eviction_requests
from roadstead.eviction_requests.kinds import EVICTIONS
from roadstead.schemas.timestamps import to_timestamp
from roadstead.store.store import EventType
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import POLICIES, policy
from simulation.world.part import Part

NAME = "acme.io/migrator"

#: Seconds that the responder takes.
WORK_S = (0.5, 20.0)


class Requests(Part):
    """A policy that evicts by request, pods with and without a responder, and that responder."""

    def begin(self) -> None:
        """The API is served, and its controllers work."""
        offer_eviction_requests(self.cluster.context)
        self.api.subscribe(EVICTIONS, self._changed)
        self.deployment(
            self.name("slow"),
            self.random.randint(2, 3),
            evictionResponders=[{"name": NAME, "priority": 10000}],
        )
        self.deployment(self.name("plain"), 2)
        spec = {
            "mode": "Enforce",
            "evictBy": "EvictionRequest",
            "evictionRequestTimeoutSeconds": self.random.choice((60, 120)),
            "planner": self.random.choice(("Proven", "Upstream")),
            "schedule": {"intervalSeconds": 10, "triggers": ["NodeTaintsChanged"]},
            "strategies": [{"name": "RemovePodsViolatingNodeTaints"}],
            "evictor": {"minReplicas": 1},
        }
        self.api.create(POLICIES, policy("by-request", rebalancing=spec))

    def _changed(self, kind: EventType, eviction: Obj, _old: Obj | None) -> None:
        if kind != "DELETED" and self._turn(eviction) == "Active":
            self.cluster.context.queue.add(self.respond, key_of(eviction), self.random.uniform(*WORK_S))

    @staticmethod
    def _turn(eviction: Obj) -> str:
        """The state of the responder's turn."""
        targets = (eviction.get("status") or {}).get("targetResponders") or ()
        return next((str(each["state"]) for each in targets if each["name"] == NAME), "")

    def respond(self, key: str) -> None:
        """Delete the pod, and say so."""
        eviction = self.cluster.context.find(EVICTIONS.key, key)
        if eviction is None or self._turn(eviction) != "Active":
            return
        changed = copied(eviction)
        report = next(each for each in changed["status"]["responders"] if each["name"] == NAME)
        if "completionTime" in report:
            return
        target = eviction["spec"]["target"]["pod"]
        namespace = eviction["metadata"]["namespace"]
        found = self.api.find("pods", namespace, target["name"])
        if found is not None and found["metadata"]["uid"] == target["uid"]:
            self.api.delete("pods", namespace, target["name"], uid=target["uid"])
        now = to_timestamp(self.cluster.context.now)
        report |= {"heartbeatTime": now, "message": "migrated", "completionTime": now}
        self.api.update_status(EVICTIONS.key, changed)
