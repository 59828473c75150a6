"""Pods with demands: ports, node and pod affinity, hard spreading, init containers, overhead, gadgets."""

from __future__ import annotations

from roadstead.kubelets.nodes import make_node
from roadstead.values.resources import Obj
from simulation.cluster import NAMESPACE, SCHEDULER, ZONES
from simulation.world.part import Part

GADGET = "example.com/gadget"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


class Demands(Part):
    """Deployments and single pods, each with one or two demands."""

    def begin(self) -> None:
        """Nodes with gadgets, and workloads."""
        for number in range(self.random.randint(1, 2)):
            node = make_node(
                f"gadgets-{number}",
                cpu="3",
                memory="8Gi",
                pods=12,
                zone=self.random.choice(ZONES),
                resources={GADGET: "2"},
            )
            self.api.create("nodes", node)
        for _ in range(self.random.randint(2, 4)):
            self._add()

    def act(self) -> None:
        """One workload more, seldom; or a node's labels change."""
        if self.random.random() < 0.3:
            self._add()

    def _add(self) -> None:
        name = self.name("demand")
        container = self.container()
        spec: Obj = {"containers": [container]}
        for demand in self.random.sample(list(DEMANDS), self.random.choice((1, 1, 2))):
            self._demand(demand, name, spec)
        if self.random.random() < 0.2:
            spec["schedulerName"] = SCHEDULER
            self.create("pods", name, metadata={"namespace": NAMESPACE, "labels": {"app": name}}, spec=spec)
        else:
            self.deployment(name, self.random.randint(1, 3), **spec)

    def _demand(self, demand: str, name: str, spec: Obj) -> None:
        selector = {"matchLabels": {"app": name}}
        requests = spec["containers"][0]["resources"]["requests"]
        affinity = spec.setdefault("affinity", {})
        term = {"labelSelector": selector, "topologyKey": self.random.choice((HOST, ZONE))}
        zones = {"key": ZONE, "operator": "In", "values": self.random.sample(ZONES, 2)}
        if demand == "port":
            port = self.random.choice((8080, 9090))
            spec["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
        elif demand == "zones":
            required = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
            affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        elif demand == "selector":
            spec["nodeSelector"] = {"kubernetes.io/os": "linux"}
        elif demand == "apart":
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        elif demand == "together":
            affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        elif demand == "spread":
            spec["topologySpreadConstraints"] = [
                {**term, "maxSkew": self.random.choice((1, 2)), "whenUnsatisfiable": "DoNotSchedule"}
            ]
        elif demand == "init":
            first: Obj = {"name": "first", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
            if self.random.random() < 0.5:
                first["restartPolicy"] = "Always"
                first["resources"]["requests"]["cpu"] = "200m"
            spec["initContainers"] = [first]
        elif demand == "overhead":
            spec["overhead"] = {"cpu": "250m", "memory": "64Mi"}
        elif demand == "gadget":
            requests[GADGET] = "1"
            spec["containers"][0]["resources"]["limits"] = {GADGET: "1"}


DEMANDS = ("port", "zones", "selector", "apart", "together", "spread", "init", "overhead", "gadget")
