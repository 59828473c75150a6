"""Judges a run from the API server's side: each commit, and the request that made it.

It shares no code with the operator, and none with the API but the stored objects: quantities, budgets,
records and leases are read by functions of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from roadstead.store.store import Change, Store

Obj = dict[str, Any]

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

#: Collections that a converged cluster may still see writes of: what is counted and noted, not done.
REPORTS = frozenset(("schedulingpolicies.plimsoll.dev", "events"))

#: Phases of moves that end within seconds; a replacement may be waited for much longer.
PASSING = frozenset(("Planned", "Evicting"))

#: What a process writes that does not lead: its own lease, and what it asks about its rights.
OWN_BUSINESS = ("/apis/coordination.k8s.io/", "/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")

EVICTION = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/eviction")
BINDING = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/binding")
LEASE, LEASE_S = ("kube-system", "plimsoll"), 15.0


def milli(text: Any) -> int:
    """A quantity in thousandths."""
    found = re.fullmatch(r"([0-9.]+)(m|k|M|G|Ki|Mi|Gi|)", str(text))
    if found is None:
        raise ValueError(f"no quantity: {text}")
    number, unit = found.groups()
    return round(float(number) * (1 if unit == "m" else 1000 * UNITS[unit]))


def requests(pod: Obj) -> dict[str, int]:
    """What a pod takes of a node, in thousandths; itself counts as one of ``pods``."""
    total = {"pods": 1000}
    for container in pod["spec"]["containers"]:
        for name, text in (container.get("resources", {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + milli(text)
    return total


def is_over(pod: Obj) -> bool:
    """Whether its containers run no more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_ready(pod: Obj) -> bool:
    """Whether its condition Ready holds."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@dataclass(slots=True)
class Author:
    """Who wrote, by which request; the name is "" for controllers, kubelets and people.

    Attributes:
        identity: In the election.
    """

    name: str = ""
    identity: str = ""
    method: str = ""
    path: str = ""
    body: bytes = b""


UNKNOWN = Author()


@dataclass(slots=True)
class Facts:
    """What has been seen, for counts in reports."""

    bindings: int = 0
    evictions: int = 0
    takeovers: int = 0
    phases: dict[str, int] = field(default_factory=dict)


class Checker:
    """Follows the commits of a store.

    Args:
        author: Who is writing just now.
        time: Virtual seconds.

    Attributes:
        violations: Sentences, each with its time.
        latest: The virtual time of the operator's last write that is no lease and no report.
    """

    def __init__(self, store: Store, author: Callable[[], Author], time: Callable[[], float]) -> None:
        self._store = store
        self._author = author
        self._time = time
        self.violations: list[str] = []
        self.facts = Facts()
        self.latest = 0.0
        self.latest_write = ""
        self._largest: dict[str, dict[str, int]] = {}  #: the most that each node ever had
        self._bound_by_us: set[str] = set()
        self._leader = ""
        self._recorded: dict[str, float] = {}  #: the last write of each record
        self._renewed: dict[str, float] = {}
        store.follow(self._follow)

    def _violated(self, sentence: str) -> None:
        self.violations.append(f"{self._time():.3f} {sentence}")

    def objects(self, collection: str) -> Iterable[Obj]:
        """The stored objects."""
        return [entry.obj for entry in self._store.collection(collection).entries.values()]

    def judge_request(self, author: Author) -> None:
        """A request is at the API server, which may yet refuse it: writes are for the leader alone."""
        if author.method != "GET" and not author.path.startswith(OWN_BUSINESS):
            self._must_lead(author, f"sent {author.method} {author.path}")

    # -- commits -----------------------------------------------------------------------------------------

    def _follow(self, name: str, change: Change) -> None:
        author = self._author()
        obj = change.entry.obj
        before = None if change.previous is None else change.previous.obj
        if name == "leases.coordination.k8s.io":
            self._lease(obj, author)
            return
        if name == "nodes":
            self._node(obj)
        elif name == "pods":
            self._pod(change.type, obj, before, author)
        elif name == "evictions.plimsoll.dev":
            self._record(obj, before)
        if author.name and name not in REPORTS:
            self.latest, self.latest_write = self._time(), f"{author.name} {author.method} {author.path}"

    def _lease(self, lease: Obj, author: Author) -> None:
        meta = lease["metadata"]
        if (meta["namespace"], meta["name"]) == LEASE:
            holder = lease["spec"].get("holderIdentity") or ""
            self.facts.takeovers += holder not in ("", self._leader)
            last = self._renewed.get(self._leader)
            if author.identity == holder != self._leader and last is not None:
                self._taken_after(self._time() - last, author)
            self._leader = holder
            if holder and (holder == author.identity or not author.identity):
                self._renewed[holder] = self._time()
            if author.identity and author.identity != holder:
                self._renewed.pop(author.identity, None)  # it gave the lease away

    def _taken_after(self, silence_s: float, author: Author) -> None:
        """A candidate took a lease that was not released; clocks of two machines differ a little.

        Who was robbed of a lease that would still be its own may take it back.
        """
        own = self._renewed.get(author.identity)
        is_own = own is not None and self._time() - own < LEASE_S
        if silence_s < LEASE_S * 0.99 and not is_own:
            self._violated(f"{author.name} took the lease of {self._leader} after {silence_s:.1f} s")

    def _node(self, node: Obj) -> None:
        name = node["metadata"]["name"]
        room = {key: milli(text) for key, text in (node["status"].get("allocatable") or {}).items()}
        largest = self._largest.setdefault(name, {})
        for key, amount in room.items():
            largest[key] = max(largest.get(key, 0), amount)

    def _pod(self, kind: str, pod: Obj, before: Obj | None, author: Author) -> None:
        meta = pod["metadata"]
        node = pod["spec"].get("nodeName") or ""
        earlier = (before or {}).get("spec", {}).get("nodeName") or ""
        if kind != "DELETED" and node and not earlier and author.name:
            self._bound(pod, node, author)
        if earlier and node != earlier and kind != "DELETED":
            self._violated(f"{meta['name']} was moved from {earlier} to {node}")
        was_leaving = before is None or "deletionTimestamp" in before["metadata"]
        leaves = kind == "DELETED" or "deletionTimestamp" in meta
        if leaves and not was_leaving and author.name:
            self._left(pod, before or pod, author)

    def _bound(self, pod: Obj, node: str, author: Author) -> None:
        meta = pod["metadata"]
        self.facts.bindings += 1
        self._bound_by_us.add(meta["uid"])
        self._must_lead(author, f"bound {meta['name']} to {node}")
        asked = json.loads(author.body)["metadata"].get("uid")
        if asked != meta["uid"]:
            self._violated(f"the binding of {meta['name']} named the uid {asked}, the pod has {meta['uid']}")
        if node not in self._largest:
            return
        taken: dict[str, int] = {}
        for other in self.objects("pods"):
            if other["spec"].get("nodeName") != node or is_over(other):
                continue
            if other["metadata"]["uid"] not in self._bound_by_us:
                continue  # what another scheduler took meanwhile could not be known
            for name, amount in requests(other).items():
                taken[name] = taken.get(name, 0) + amount
        for name, amount in taken.items():
            room = self._largest[node].get(name, 0)
            if amount > room:
                self._violated(
                    f"{author.name} over-committed {node} by {meta['name']}: {amount} of {room} milli {name}"
                )

    def _must_lead(self, author: Author, what: str) -> None:
        """A lease that was stolen is noticed late; until it would have expired, its last holder may write."""
        renewed = self._renewed.get(author.identity)
        if renewed is None or (self._leader != author.identity and self._time() - renewed >= LEASE_S):
            self._violated(f"{author.name} {what}, but the lease is held by {self._leader or 'nobody'}")

    def _left(self, pod: Obj, before: Obj, author: Author) -> None:
        """A pod is deleted, or about to be, by a request of the operator."""
        meta = pod["metadata"]
        self.facts.evictions += 1
        self._must_lead(author, f"removed {meta['name']}")
        if not EVICTION.fullmatch(author.path):
            conditions = (pod.get("status") or {}).get("conditions") or ()
            if not any(each["type"] == "DisruptionTarget" for each in conditions):
                self._violated(f"{author.name} deleted {meta['name']} without saying why")
            return
        asked = (json.loads(author.body).get("deleteOptions") or {}).get("preconditions", {}).get("uid")
        if asked != meta["uid"]:
            self._violated(f"the eviction of {meta['name']} named the uid {asked}, the pod has {meta['uid']}")
        if not any(self._covers(record, meta["uid"]) for record in self.objects("evictions.plimsoll.dev")):
            self._violated(f"{author.name} evicted {meta['name']} without a record of that")
        self._within_budgets(before)

    @staticmethod
    def _covers(record: Obj, uid: str) -> bool:
        spec, status = record.get("spec") or {}, record.get("status") or {}
        return uid in json.dumps(spec) and status.get("phase") == "Evicting"

    def _within_budgets(self, pod: Obj) -> None:
        meta = pod["metadata"]
        if not is_ready(pod):
            return
        for budget in self.objects("poddisruptionbudgets.policy"):
            labels = budget["spec"]["selector"].get("matchLabels") or {}
            if budget["metadata"]["namespace"] != meta["namespace"]:
                continue
            if any((meta.get("labels") or {}).get(key) != value for key, value in labels.items()):
                continue
            wanted = budget.get("status", {}).get("desiredHealthy", 0)
            healthy = 0
            for other in self.objects("pods"):
                owned = other["metadata"]
                same = all((owned.get("labels") or {}).get(key) == value for key, value in labels.items())
                if (
                    same
                    and is_ready(other)
                    and owned["uid"] != meta["uid"]
                    and "deletionTimestamp" not in owned
                ):
                    healthy += 1
            if healthy < wanted:
                self._violated(f"{meta['name']} was evicted against a budget: {healthy} of {wanted} are left")

    def _record(self, record: Obj, before: Obj | None) -> None:
        phase = (record.get("status") or {}).get("phase", "")
        self._recorded[record["metadata"]["uid"]] = self._time()
        if phase and phase != ((before or {}).get("status") or {}).get("phase"):
            self.facts.phases[phase] = self.facts.phases.get(phase, 0) + 1

    # -- the end -----------------------------------------------------------------------------------------

    def judge_end(self, scheduler: str, still_s: float) -> None:
        """What must hold once nothing has gone wrong for a while.

        Args:
            scheduler: The scheduler name that the operator serves.
            still_s: Virtual seconds in which the operator must have written nothing.
        """
        for record in self.objects("evictions.plimsoll.dev"):
            phase = (record.get("status") or {}).get("phase")
            if phase in PASSING and self._recorded[record["metadata"]["uid"]] < self._time() - still_s:
                self._violated(f"the record {record['metadata']['name']} is still {phase}")
        free = self._free()
        for pod in self.objects("pods"):
            if pod["spec"].get("schedulerName") != scheduler or is_over(pod):
                continue
            name, wanted = pod["metadata"]["name"], requests(pod)
            if pod["spec"].get("nodeName"):
                continue
            fits = [
                node for node, room in free.items() if all(room.get(k, 0) >= v for k, v in wanted.items())
            ]
            if fits:
                self._violated(f"{name} is not placed, though {fits[0]} has room")
        for workload in self.objects("deployments.apps"):
            labels = workload["spec"]["template"]["metadata"]["labels"]
            there = sum(
                1
                for pod in self.objects("pods")
                if (pod["metadata"].get("labels") or {}).get("app") == labels["app"]
                and not is_over(pod)
                and "deletionTimestamp" not in pod["metadata"]
            )
            if there != workload["spec"]["replicas"]:
                self._violated(f"{labels['app']} has {there} pods, not {workload['spec']['replicas']}")
        if self._time() - self.latest < still_s and not self._moves_without_proof():
            self._violated(f"the operator still writes: {self.latest_write} at {self.latest:.3f}")

    def _moves_without_proof(self) -> bool:
        """Whether a policy evicts as descheduler does, whose moves may go back and forth for ever."""
        return any(
            spec.get("planner") == "Upstream" and spec.get("mode") == "Enforce"
            for spec in (
                each["spec"].get("rebalancing") or {}
                for each in self.objects("schedulingpolicies.plimsoll.dev")
            )
        )

    def _free(self) -> dict[str, dict[str, int]]:
        """The room of each node that takes pods."""
        free = {}
        for node in self.objects("nodes"):
            ready = any(
                each["type"] == "Ready" and each["status"] == "True"
                for each in node["status"].get("conditions") or ()
            )
            if not ready or node["spec"].get("unschedulable") or node["spec"].get("taints"):
                continue
            free[node["metadata"]["name"]] = {
                key: milli(text) for key, text in node["status"]["allocatable"].items()
            }
        for pod in self.objects("pods"):
            room = free.get(pod["spec"].get("nodeName") or "")
            if room is not None and not is_over(pod):
                for name, amount in requests(pod).items():
                    room[name] = room.get(name, 0) - amount
        return free
