"""Places are nodes that surely take a pod, so that one that waits there has been forgotten.

Sure means: where a rule is not evaluated here (affinity to other pods, gangs, claims of devices), there is no
place. So a pod without a place may be placed nevertheless, and a pod with one must be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from promises.affinities import reaches, selects_pod, tolerates
from promises.claims import ClaimedVolumes
from promises.commits import Obj
from promises.pods import is_leaving, is_over, is_ready, node_of
from promises.quantities import Amounts, counts_all, milli, requests
from promises.selectors import selects
from promises.view import View

GROUP_LABELS = ("plimsoll.dev/pod-group", "scheduling.x-k8s.io/pod-group")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

#: Fields of a spreading constraint, or a term of affinity, that are not evaluated here.
UNKNOWN_SPREAD = ("matchLabelKeys", "nodeAffinityPolicy", "nodeTaintsPolicy")


class Places:
    """The nodes of a cluster that stands still, and what is free on them."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._nodes = {node["metadata"]["name"]: node for node in view.objects("nodes")}
        self._placed = [
            pod for pod in view.objects("pods") if node_of(pod) in self._nodes and not is_over(pod)
        ]
        self._volumes = ClaimedVolumes(view, self._placed)

    def of(self, pod: Obj) -> Iterator[str]:
        """Nodes that surely take a pod in addition to all that is there."""
        if not _is_evaluated(pod) or not self._volumes.are_evaluated(pod):
            return
        wanted = requests(pod)
        for name, node in self._nodes.items():
            if _fits(wanted, self._free(node, pod, ())) and self._allows(pod, node):
                yield name

    def by_force(self, pod: Obj) -> Iterator[str]:
        """Nodes that would take a pod of plain demands if its inferiors went; they need not be few."""
        if priority(pod) <= 0 or pod["spec"].get("preemptionPolicy") == "Never" or not _is_plain(pod):
            return
        wanted = requests(pod)
        for name, node in self._nodes.items():
            inferior = [each for each in self._on(name) if priority(each) < priority(pod)]
            if _fits(wanted, self._free(node, pod, inferior)) and self._allows(pod, node):
                yield name

    # -- room ------------------------------------------------------------------------------------------------

    def _on(self, name: str) -> Iterator[Obj]:
        return (each for each in self._placed if node_of(each) == name)

    def _free(self, node: Obj, pod: Obj, without: Iterable[Obj]) -> Amounts:
        """What is left for a pod; those that are nominated and no less important count as placed."""
        name, gone = node["metadata"]["name"], {each["metadata"]["uid"] for each in without}
        room = {key: milli(text) for key, text in (node["status"].get("allocatable") or {}).items()}
        for other in self._view.objects("pods"):
            is_here = node_of(other) == name or (
                (other.get("status") or {}).get("nominatedNodeName") == name
                and not node_of(other)
                and priority(other) >= priority(pod)
            )
            uid = other["metadata"]["uid"]
            if is_here and not is_over(other) and uid not in gone and uid != pod["metadata"]["uid"]:
                for resource, amount in requests(other).items():
                    room[resource] = room.get(resource, 0) - amount
        return room

    # -- rules -----------------------------------------------------------------------------------------------

    def _allows(self, pod: Obj, node: Obj) -> bool:
        spec, labels = pod["spec"], node["metadata"].get("labels") or {}
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        return (
            is_ready(node)
            and not node["spec"].get("unschedulable")
            and not is_leaving(node)
            and tolerates(pod, node)
            and selects({"matchLabels": spec.get("nodeSelector") or {}}, labels)
            and reaches(affinity.get(REQUIRED), node)
            and not self._ports(pod, node)
            and not self._rejected(pod, node)
            and self._is_even(pod, node)
            and self._volumes.reach(pod, node)
        )

    def _ports(self, pod: Obj, node: Obj) -> bool:
        """Whether a host port is taken, by whatever address or protocol."""
        taken = {port for each in self._on(node["metadata"]["name"]) for port in host_ports(each)}
        return bool(taken & host_ports(pod))

    def _rejected(self, pod: Obj, node: Obj) -> bool:
        """Whether anti-affinity of the pod or of one that is there keeps it away, whatever its namespace."""
        for other in self._placed:
            home = self._nodes[node_of(other)]
            terms = [each for each in anti_affinity(pod) if selects_pod(each, other)]
            terms += [each for each in anti_affinity(other) if selects_pod(each, pod)]
            if any(_domain(node, each) in (None, "", _domain(home, each)) for each in terms):
                return True
        return False

    def _is_even(self, pod: Obj, node: Obj) -> bool:
        """Whether the pod keeps each hard spreading constraint there."""
        hard = hard_spread(pod)
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        counted = [
            each
            for each in self._nodes.values()
            if all(_domain(each, one) is not None for one in hard)
            and reaches(affinity.get(REQUIRED), each)
            and selects(
                {"matchLabels": pod["spec"].get("nodeSelector") or {}}, each["metadata"].get("labels") or {}
            )
        ]
        for constraint in hard:
            sizes = Counter({_domain(each, constraint): 0 for each in counted})
            for other in self._placed:
                home = self._nodes[node_of(other)]
                is_same = other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                if home in counted and is_same and selects_pod(constraint, other):
                    sizes[_domain(home, constraint)] += not is_leaving(other)
            own = selects_pod(constraint, pod)
            least = 0 if len(sizes) < constraint.get("minDomains", 1) else min(sizes.values(), default=0)
            here = _domain(node, constraint)
            if here not in sizes or sizes[here] + own - least > constraint["maxSkew"]:
                return False
        return True


def priority(pod: Obj) -> int:
    """The number."""
    return int(pod["spec"].get("priority") or 0)


def host_ports(pod: Obj) -> set[int]:
    """The ports of its node that it takes."""
    spec = pod["spec"]
    ports = [
        port
        for each in (*spec["containers"], *(spec.get("initContainers") or ()))
        for port in each.get("ports") or ()
    ]
    taken = {int(port["hostPort"]) for port in ports if port.get("hostPort")}
    return taken | {int(port["containerPort"]) for port in ports if spec.get("hostNetwork")}


def anti_affinity(pod: Obj) -> list[Obj]:
    """Its required terms."""
    affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return affinity.get(REQUIRED) or []


def hard_spread(pod: Obj) -> list[Obj]:
    """Its constraints that must be kept."""
    given = pod["spec"].get("topologySpreadConstraints") or ()
    return [each for each in given if each["whenUnsatisfiable"] == "DoNotSchedule"]


def _domain(node: Obj, term: Obj) -> str | None:
    """The value of its label; "" is one, too."""
    found: str | None = (node["metadata"].get("labels") or {}).get(term["topologyKey"])
    return found


def _fits(wanted: Amounts, room: Amounts) -> bool:
    return all(room.get(name, 0) >= amount for name, amount in wanted.items())


def _is_evaluated(pod: Obj) -> bool:
    """Whether all rules for this pod are evaluated here."""
    spec, labels = pod["spec"], pod["metadata"].get("labels") or {}
    affinity = spec.get("affinity") or {}
    return not (
        is_leaving(pod)
        or not counts_all(pod)
        or spec.get("schedulingGates")
        or spec.get("resourceClaims")
        or (affinity.get("podAffinity") or {}).get(REQUIRED)
        or any(label in labels for label in GROUP_LABELS)
        or any(key in each for each in hard_spread(pod) for key in UNKNOWN_SPREAD)
    )


def _is_plain(pod: Obj) -> bool:
    """Whether removing pods can only help it."""
    spec = pod["spec"]
    return _is_evaluated(pod) and not (
        host_ports(pod) or hard_spread(pod) or anti_affinity(pod) or spec.get("volumes")
    )
