"""PeopleDeeds are what people do by hand: to pods, workloads, budgets, policies and records."""

from __future__ import annotations

from roadstead.values.copies import copied
from simulation.cluster import POLICIES, RECORDS
from simulation.deeds.scene import Scene, Way
from simulation.faults import FaultKind

BUDGETS = "poddisruptionbudgets.policy"


class PeopleDeeds:
    """Deeds of people.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self._random = scene.random
        self.ways: dict[FaultKind, Way] = {
            FaultKind.POD_DELETED: self._delete_pod,
            FaultKind.POLICY_EDITED: self._edit_policy,
            FaultKind.BUDGET_CHANGED: self._change_budget,
            FaultKind.WORKLOAD_SCALED: self._scale,
            FaultKind.RECORD_DELETED: self._delete_record,
        }

    def _delete_pod(self) -> bool:
        pod = self._scene.chosen("pods")
        if pod is None:
            return False
        meta, grace_s = pod["metadata"], self._random.choice((None, 0))
        self._api.delete("pods", meta["namespace"], meta["name"], grace_seconds=grace_s)
        return True

    def _edit_policy(self) -> bool:
        if self._random.random() < 0.5:
            found = self._scene.chosen(POLICIES)
            if found is None:
                return False
            found["metadata"].setdefault("labels", {})["edited"] = str(self._random.randrange(100))
            if "rebalancing" in found["spec"]:
                mode = self._random.choice(("DryRun", "Enforce"))
                found["spec"]["rebalancing"]["mode"] = mode
            self._api.update(POLICIES, found)
            return True
        serve = self._api.find(POLICIES, None, "serve")
        if serve is None:
            return False
        kept = {key: serve[key] for key in ("apiVersion", "spec")}
        self._api.delete(POLICIES, None, "serve")
        again = {**copied(kept), "metadata": {"name": "serve"}}
        self._scene.later(lambda: self._api.create(POLICIES, again))
        return True

    def _change_budget(self) -> bool:
        """Edit, delete or create one."""
        budget = self._scene.chosen(BUDGETS)
        drawn = self._random.random()
        if budget is None or drawn < 0.2:
            return self._create_budget()
        meta = budget["metadata"]
        if drawn < 0.4:
            self._api.delete(BUDGETS, meta["namespace"], meta["name"])
            return True
        budget["spec"].pop("minAvailable", None)
        budget["spec"]["maxUnavailable"] = self._random.choice((0, 1, 2))
        self._api.update(BUDGETS, budget)
        return True

    def _create_budget(self) -> bool:
        workload = self._scene.chosen("deployments.apps")
        if workload is None:
            return False
        spec = {"selector": workload["spec"]["selector"], "maxUnavailable": self._random.choice((0, 1))}
        name = self._scene.named("budget")
        namespace = workload["metadata"]["namespace"]
        self._api.create(BUDGETS, {"metadata": {"name": name, "namespace": namespace}, "spec": copied(spec)})
        return True

    def _scale(self) -> bool:
        workload = self._scene.chosen("deployments.apps")
        if workload is None:
            return False
        workload["spec"]["replicas"] = self._random.randint(0, 5)
        self._api.update("deployments.apps", workload)
        return True

    def _delete_record(self) -> bool:
        record = self._scene.chosen(RECORDS)
        if record is None:
            return False
        self._api.delete(RECORDS, record["metadata"]["namespace"], record["metadata"]["name"])
        return True
