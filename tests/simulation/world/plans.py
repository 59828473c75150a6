"""Policies with drawn strategies, planners, limits, windows, protections and arguments of the evictor."""

from __future__ import annotations

from typing import Any

from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import NAMESPACE, POLICIES, policy
from simulation.world.demands import GADGET
from simulation.world.part import Part


class Plans(Part):
    """One or two policies more, which share their pods with the others."""

    def begin(self) -> None:
        """The policies, and pods that crash, fail or grow old."""
        self._restless()
        for number in range(self.random.randint(1, 2)):
            self.api.create(POLICIES, policy(f"plan-{number}", rebalancing=self._rebalancing()))

    def _restless(self) -> None:
        """Containers that end again and again, and a pod that has failed."""
        again = {"roadstead.test/exit-after": "5", "roadstead.test/exit-code": "1"}
        made = self.deployment("restless", self.random.randint(1, 2))
        made["spec"]["template"]["metadata"]["annotations"] = again
        self.api.update("deployments.apps", made)
        spec = {"schedulerName": "plimsoll", "restartPolicy": "Never", "containers": [self.container()]}
        self.create("pods", "fails", metadata={"annotations": again}, spec=spec)

    def act(self) -> None:
        """Somebody edits one of them."""
        found = self.chosen(POLICIES)
        if found is not None and found["metadata"]["name"].startswith("plan-"):
            found["spec"]["rebalancing"] = self._rebalancing()
            self.api.update(POLICIES, found)

    def end(self) -> None:
        """No pod crashes any more: a policy may restart such pods for ever."""
        restless = copied(self.api.get("deployments.apps", NAMESPACE, "restless"))
        restless["spec"]["replicas"] = 0
        self.api.update("deployments.apps", restless)

    def _rebalancing(self) -> Obj:
        planner = self._one("Proven", "Proven", "Upstream", "Optimal")
        names = self.random.sample(list(STRATEGIES), self.random.randint(1, 4))
        strategies = [{"name": name, "args": self.random.choice(STRATEGIES[name])} for name in names]
        spec: Obj = {
            "mode": self._one("Enforce", "Enforce", "DryRun", "Approve"),
            "planner": planner,
            "schedule": self._one(
                {"intervalSeconds": 10},
                {"intervalSeconds": 20, "triggers": ["NodeAdded", "NodeTaintsChanged", "NodeLabelsChanged"]},
                {"cron": "* * * * *", "timeZone": "Europe/Berlin"},
            ),
            "strategies": strategies,
            "evictor": self._evictor(planner),
            "limits": self._limits(),
            "records": {"maxCount": self._one(3, 1000)},
        }
        if planner == "Optimal":
            objective = self._one("FewestViolations", "SmallestSpread", "FewestNodes")
            spec["optimizer"] = {"objective": objective, "timeLimitSeconds": 600}
        if self.random.random() < 0.3:
            spec["anomalyRounds"] = 2
        if self.random.random() < 0.3:
            spec["minimumGainPercent"] = self._one(0, 5, 50)
        return spec

    def _evictor(self, planner: str) -> Obj:
        spec: Obj = {"minReplicas": self._one(0, 1, 2), "minPodAge": self._one("1s", "15s")}
        if self.random.random() < 0.3:
            spec["priorityThreshold"] = {"value": self._one(100, 10000)}
        if self.random.random() < 0.3:
            spec["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        if self.random.random() < 0.3:
            spec["noEvictionPolicy"] = "Mandatory"
        if self.random.random() < 0.4:
            spec["podProtections"] = {
                "defaultDisabled": self._some("FailedBarePods", "PodsWithLocalStorage", "DaemonSetPods"),
                "extraEnabled": self._some("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"),
            }
        if planner == "Upstream":
            spec["nodeFit"] = self.random.random() < 0.5
        return spec

    def _limits(self) -> Obj:
        spec: Obj = {
            name: self._one(*values) for name, values in LIMITS.items() if self.random.random() < 0.5
        }
        if self.random.random() < 0.4:
            window = {"name": "window", "evictions": self._one(0, 1, "50%")}
            if self.random.random() < 0.7:
                opens = self._one("*/2 * * * *", "* * * * *")
                window |= {"schedule": opens, "duration": self._one("20s", "1m")}
            spec["budgets"] = [window]
        return spec

    def _one(self, *values: Any) -> Any:
        return self.random.choice(values)

    def _some(self, *values: str) -> list[str]:
        return [value for value in values if self.random.random() < 0.5]


LIMITS: dict[str, tuple[Any, ...]] = {
    "total": (0, 1, 3, "100%"),
    "perNode": (1, "50%", "100%"),
    "perNamespace": (2, "100%"),
    "perWorkload": (1, 2, "50%"),
    "perMinute": (1, 5),
}

LOW, HIGH = {"cpu": 30, "pods": 100}, {"cpu": 50, "pods": 100}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MEASURED = {"metricsUtilization": {"source": "KubernetesMetrics"}}

#: Valid arguments of each built-in strategy. Those that would restart the same pods for ever look at those
#: only that a run has a few of.
STRATEGIES: dict[str, tuple[Obj, ...]] = {
    "ConsolidateNodes": ({}, {"thresholds": {"cpu": 40}, "headroomPercent": 0, "nodes": 2}),
    "DefragmentResource": ({"block": {"cpu": "2"}}, {"block": {GADGET: "2"}, "maxMovesPerBlock": 2}),
    "FollowScore": ({}, {"marginPercent": 5}),
    "HighNodeUtilization": ({"thresholds": {"cpu": 30}}, {"thresholds": {"cpu": 50, "memory": 50}}),
    "ImproveTopology": (
        {"topologyKey": "topology.kubernetes.io/zone", "slowdownPercent": 100, "restartSeconds": 5},
        {"topologyKey": "kubernetes.io/hostname", "slowdownPercent": 100, "restartSeconds": 1},
    ),
    "LowNodeUtilization": (
        {"thresholds": LOW, "targetThresholds": HIGH},
        {"thresholds": LOW, "targetThresholds": HIGH, "evictionLimits": {"node": 1}},
        {"thresholds": {"cpu": 5}, "targetThresholds": {"cpu": 10}, "useDeviationThresholds": True},
    ),
    "MakeRoomForPending": ({}, {"maxMovesPerPod": 2}),
    "PodLifeTime": ({"maxPodLifeTimeSeconds": 20, "states": ["Failed"]},),
    "RemoveDuplicates": ({}, {"excludeOwnerKinds": ["StatefulSet"]}),
    "RemoveFailedPods": ({"minPodLifetimeSeconds": 5}, {"minPodLifetimeSeconds": 0, "exitCodes": [1]}),
    "RemovePodsFromUnhealthyNodes": ({}, {"maxNodes": 3, "recoverySeconds": 0}),
    "RemovePodsHavingTooManyRestarts": ({"podRestartThreshold": 3}, {"podRestartThreshold": 2}),
    "RemovePodsViolatingInterPodAntiAffinity": ({},),
    "RemovePodsViolatingNodeAffinity": (
        {"nodeAffinityType": [REQUIRED]},
        {"nodeAffinityType": [REQUIRED, PREFERRED]},
    ),
    "RemovePodsViolatingNodeTaints": ({}, {"includePreferNoSchedule": True, "excludedTaints": ["other"]}),
    "RemovePodsViolatingTopologySpreadConstraint": (
        {},
        {"constraints": ["DoNotSchedule", "ScheduleAnyway"], "topologyBalanceNodeFit": False},
    ),
}
