"""PlacementPromise: no pod is bound twice or in place of another, and our bindings over-commit no node."""

from __future__ import annotations

import json

from promises.commits import Author, Commit, Obj
from promises.election import ElectionPromise
from promises.findings import Findings
from promises.pods import is_over, node_of
from promises.quantities import milli, requests
from promises.view import View


class PlacementPromise:
    """Judges bindings."""

    def __init__(self, view: View, findings: Findings, election: ElectionPromise) -> None:
        self._view = view
        self._findings = findings
        self._election = election
        self._largest: dict[str, dict[str, int]] = {}  #: the most that each node ever had
        self._bound_by_us: set[str] = set()

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection == "nodes":
            self._node(commit.obj)
        elif commit.collection == "pods" and commit.type != "DELETED":
            self._pod(commit)

    def _node(self, node: Obj) -> None:
        largest = self._largest.setdefault(node["metadata"]["name"], {})
        for key, text in (node["status"].get("allocatable") or {}).items():
            largest[key] = max(largest.get(key, 0), milli(text))

    def _pod(self, commit: Commit) -> None:
        name = commit.obj["metadata"]["name"]
        node, earlier = node_of(commit.obj), node_of(commit.before)
        if node and not earlier and commit.author.name:
            self._bound(commit.obj, node, commit.author, commit.at)
        if earlier and node != earlier:
            self._findings.violated(commit.at, f"{name} was moved from {earlier} to {node}")

    def _bound(self, pod: Obj, node: str, author: Author, at: float) -> None:
        meta = pod["metadata"]
        self._findings.facts.bindings += 1
        self._bound_by_us.add(meta["uid"])
        self._election.must_lead(author, f"bound {meta['name']} to {node}", at)
        asked = json.loads(author.body)["metadata"].get("uid")
        if asked != meta["uid"]:
            self._findings.violated(
                at, f"the binding of {meta['name']} named the uid {asked}, the pod has {meta['uid']}"
            )
        if node in self._largest:
            self._fits(meta["name"], node, author, at)

    def _fits(self, name: str, node: str, author: Author, at: float) -> None:
        """What another scheduler took meanwhile could not be known, so our own pods count."""
        taken: dict[str, int] = {}
        for other in self._view.objects("pods"):
            if node_of(other) != node or is_over(other) or other["metadata"]["uid"] not in self._bound_by_us:
                continue
            for resource, amount in requests(other).items():
                taken[resource] = taken.get(resource, 0) + amount
        for resource, amount in taken.items():
            room = self._largest[node].get(resource, 0)
            if amount > room:
                self._findings.violated(
                    at, f"{author.name} over-committed {node} by {name}: {amount} of {room} milli {resource}"
                )
