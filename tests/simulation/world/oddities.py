"""Odd objects that the API accepts; none may stop anything else."""

from __future__ import annotations

from typing import Any

from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.cluster import POLICIES, SCHEDULER, policy
from simulation.world.part import Part

LONG = "x" * 63
QUANTITIES = ("0", "1E", "100u", "1e3", "0.5", "1500n", "9223372036854775807", "10000000000E", "1.5Gi", "-0")
NAMES = ("cpu", "memory", "ephemeral-storage", "example.com/gadget", "hugepages-2Mi", "pods", "example.com/é")
KEYS = ("app", "a/b", "kubernetes.io/hostname", LONG, f"{LONG}.io/{LONG}", "topology.kubernetes.io/zone")


class Oddities(Part):
    """Drawn at random; what the API refuses is drawn again."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.accepted = 0

    def begin(self) -> None:
        """A few of each kind."""
        for _ in range(self.random.randint(3, 6)):
            self.act()

    def act(self) -> None:
        """One odd object more."""
        make = self.random.choice((self._pod, self._pod, self._pod, self._node, self._policy, self._budget))
        for _ in range(4):
            try:
                make()
            except StatusError:
                continue
            self.accepted += 1
            return

    def _quantities(self) -> Obj:
        chosen = self.random.sample(NAMES, self.random.randint(0, 3))
        return {name: self.random.choice(QUANTITIES) for name in chosen}

    def _labels(self) -> Obj:
        chosen = self.random.sample(KEYS, self.random.randint(0, 2))
        return {key: self.random.choice(("", "x", LONG, "zone-a")) for key in chosen}

    def _selector(self) -> Obj:
        operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        expression: Obj = {"key": self.random.choice(KEYS), "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = [self.random.choice(("", "x", LONG))]
        return self.random.choice(({}, {"matchLabels": self._labels()}, {"matchExpressions": [expression]}))

    def _container(self, name: str) -> Obj:
        resources = {"requests": self._quantities(), "limits": self._quantities()}
        given = self.random.sample(list(resources), self.random.randint(0, 2))
        ports = [{"containerPort": 1, "hostPort": self.random.choice((1, 65535)), "hostIP": "::"}]
        odd: Obj = {"name": name, "image": "x", "resources": {key: resources[key] for key in given}}
        if self.random.random() < 0.2:
            odd["ports"] = ports
        return odd

    def _pod(self) -> None:
        spec: Obj = {
            "schedulerName": self.random.choice((SCHEDULER, SCHEDULER, "nobody", "plimsol")),
            "containers": [self._container(f"c{number}") for number in range(self.random.choice((1, 1, 30)))],
        }
        term = {"topologyKey": self.random.choice(KEYS), "labelSelector": self._selector()}
        odd: dict[str, Any] = {
            "initContainers": [self._container("first")],
            "tolerations": [{"operator": "Exists"}, {"key": "simulated", "operator": "Equal", "value": ""}],
            "nodeSelector": self._labels(),
            "schedulingGates": [{"name": "example.com/gate"}],
            "overhead": self._quantities(),
            "priority": None,
            "priorityClassName": "system-node-critical",
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 0,
            "topologySpreadConstraints": [
                {
                    **term,
                    "maxSkew": 2**31 - 1,
                    "minDomains": self.random.choice((1, 1000)),
                    "whenUnsatisfiable": "DoNotSchedule",
                    "matchLabelKeys": ["app", "absent"],
                }
            ],
            "affinity": self.random.choice(
                (
                    {},
                    {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
                    {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
                    {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
                    self._node_affinity(),
                )
            ),
            "volumes": [
                {"name": "a", "emptyDir": {"sizeLimit": "0"}},
                {"name": "b", "persistentVolumeClaim": {"claimName": "absent"}},
            ],
            "resourceClaims": [{"name": "a", "resourceClaimName": "absent"}],
            "resources": {"requests": {"cpu": "1"}},
            "nodeName": "nowhere",
        }
        for key in self.random.sample(list(odd), self.random.randint(0, 4)):
            spec[key] = odd[key]
        self.create("pods", self.name("odd"), metadata={"labels": self._labels()}, spec=spec)

    def _node_affinity(self) -> Obj:
        operator = self.random.choice(("Gt", "Lt", "Exists", "NotIn"))
        expression: Obj = {"key": self.random.choice(KEYS), "operator": operator}
        if operator != "Exists":
            expression["values"] = [self.random.choice(("0", "-1", "9223372036854775807"))]
        terms: list[Obj] = [{}, {"matchExpressions": [expression]}, {"matchFields": []}]
        required = {"nodeSelectorTerms": self.random.sample(terms, self.random.randint(1, 3))}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}

    def _node(self) -> None:
        quantities = self._quantities()
        status = {"capacity": quantities, "allocatable": quantities}
        taints = [
            {"key": self.random.choice(KEYS), "value": "", "effect": self.random.choice(("NoSchedule", "x"))}
        ]
        spec: Obj = {"taints": taints, "unschedulable": self.random.choice((True, False))}
        made = self.create("nodes", self.name("odd"), metadata={"labels": self._labels()}, spec=spec)
        self.api.update_status("nodes", {**made, "status": self.random.choice(({}, status))})

    def _policy(self) -> None:
        rebalancing = {
            "mode": "Enforce",
            "schedule": {"intervalSeconds": 5},
            "strategies": [{"name": self.random.choice(("Unknown", "PodLifeTime", "RemoveDuplicates"))}],
            "evictor": {"labelSelector": self._selector(), "nodeSelector": "a in (b),,c"},
        }
        scheduling = {
            "schedulerName": self.random.choice((SCHEDULER, "odd")),
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Odd"}}}],
            "plugins": {"filter": {"enabled": [{"name": "Absent"}]}},
        }
        chosen = self.random.choice(({"rebalancing": rebalancing}, {"scheduling": scheduling}, {}))
        name = self.name("odd")
        self.api.create(POLICIES, policy(name, **chosen))

    def _budget(self) -> None:
        limit = self.random.choice(("minAvailable", "maxUnavailable"))
        spec = {limit: self.random.choice((0, "0%", "100%", 2**31 - 1)), "selector": self._selector()}
        self.create("poddisruptionbudgets.policy", self.name("odd"), spec=spec)
