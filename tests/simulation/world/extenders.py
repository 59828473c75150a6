"""HTTP extenders of the policy that serves the pods, and services behind them that break and recover."""

from __future__ import annotations

from random import Random

from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import POLICIES, SimulatedCluster
from simulation.extenders import ExtenderServer, Manner
from simulation.world.demands import GADGET
from simulation.world.part import Part

HOSTS = ("one.simulated", "two.simulated")


class Extenders(Part):
    """One or two."""

    def __init__(self, cluster: SimulatedCluster, random: Random, server: ExtenderServer) -> None:
        super().__init__(cluster, random)
        self._server = server

    def begin(self) -> None:
        """The policy names them."""
        hosts = HOSTS[: self.random.randint(1, 2)]
        binds = self.random.choice(hosts) if self.random.random() < 0.7 else ""
        serve = copied(self.api.get(POLICIES, None, "serve"))
        serve["spec"]["scheduling"]["extenders"] = [
            self._extender(host, binds=host == binds, manages=position > 0)
            for position, host in enumerate(hosts)
        ]
        self.api.update(POLICIES, serve)

    def _extender(self, host: str, *, binds: bool, manages: bool) -> Obj:
        spec: Obj = {
            "urlPrefix": f"http://{host}/scheduler",
            "httpTimeout": self.random.choice(("3s", "5s", "10s")),
            "nodeCacheCapable": self.random.random() < 0.5,
            "ignorable": self.random.random() < 0.5,
        }
        if self.random.random() < 0.7 or not binds:
            spec["filterVerb"] = "filter"
        if self.random.random() < 0.5:
            spec |= {"prioritizeVerb": "prioritize", "weight": self.random.randint(1, 3)}
        if self.random.random() < 0.3:
            spec["preemptVerb"] = "preempt"
        if binds:
            spec["bindVerb"] = "bind"
        if manages and self.random.random() < 0.5:
            spec["managedResources"] = [{"name": GADGET, "ignoredByScheduler": self.random.random() < 0.5}]
            spec["filterVerb"] = "filter"  # or nothing would keep pods from nodes whose gadgets are taken
            self._server.managers[host] = self._has_gadgets
        return spec

    def _has_gadgets(self, uid: str, node: str) -> bool:
        """Whether the gadgets of a node suffice for a pod; a node that has none gets them from elsewhere."""
        pods = self.cluster.objects("pods")
        wanted = sum(
            _gadgets(each)
            for each in pods
            if each["metadata"]["uid"] == uid
            or (
                each["spec"].get("nodeName") == node
                and (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            )
        )
        nodes = [each for each in self.cluster.objects("nodes") if each["metadata"]["name"] == node]
        return all(wanted <= int(each["status"]["allocatable"].get(GADGET, wanted)) for each in nodes)

    def act(self) -> None:
        """One breaks in some way, or recovers."""
        host = self.random.choice(HOSTS)
        is_good = self._server.manners.get(host, Manner.GOOD) is Manner.GOOD
        self._server.manners[host] = self.random.choice(list(Manner)) if is_good else Manner.GOOD

    def end(self) -> None:
        """All are well."""
        self._server.manners.clear()


def _gadgets(pod: Obj) -> int:
    """How many a pod asks for."""
    requests = [(each.get("resources") or {}).get("requests") or {} for each in pod["spec"]["containers"]]
    return sum(int(each.get(GADGET, 0)) for each in requests)
