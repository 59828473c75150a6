"""MoveFaults are people who meddle with a move at its own requests, and answers to these that come late.

What is decided about a move depends on which of its events comes first: the answer to what was sent, or the
pod, its replacement, the policy, the record, the stop button. These change in the very moment of the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

import orjson

from roadstead.store.api import Write
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import POLICIES, RECORDS
from simulation.deeds.scene import Scene, Way, attempted
from simulation.exchanges import Exchange
from simulation.faults import FaultKind
from simulation.world.approvals import APPROVED
from simulation.world.pauses import HOME, STOP

DEPLOYMENTS = "deployments.apps"
RECORD = "/apis/plimsoll.dev/[^/]+/namespaces/(?P<ns>[^/]+)/evictions"

#: Requests of a move, by method and path.
REQUESTS = {
    "record": re.compile(f"POST {RECORD}"),
    "status": re.compile(rf"(PATCH|PUT) {RECORD}/(?P<record>[^/]+)/status"),
    "eviction": re.compile(r"POST /api/v1/namespaces/(?P<ns>[^/]+)/pods/(?P<pod>[^/]+)/eviction"),
    "rollout": re.compile(r"PATCH /apis/apps/v1/namespaces/(?P<ns>[^/]+)/deployments/(?P<deployment>[^/]+)"),
    "look": re.compile(r"GET /apis/apps/v1/namespaces/(?P<ns>[^/]+)/deployments/(?P<deployment>[^/]+)"),
}

#: Requests whose answers come late: the move goes on without them.
SLOW = ("eviction", "rollout", "look")

#: What there is only after the request; the others are also met right before it.
MADE = ("record", "rollout")

#: Seconds that a deed lasts, and until a replacement may be there.
WHILE_S, SOON_S = (1.0, 15.0), (0.2, 5.0)

#: Seconds in which a deleted pod has gone, and its controller has made another one.
SHORTLY_S = (0.3, 2.0)

#: Annotation of the pods that a surge brings up.
SURGED = "plimsoll.dev/surged"

BACK, GROWS, DELETED, COMES_BACK = (
    "the node is as before",
    "its workload is scaled up there",
    "its youngest pod is deleted soon",
    "the pod and its replacement are deleted, and its node alone is open",
)

RECORD_DELETED, POLICY_CHANGED = "the record is deleted", "the policy is changed"
REJECTED, ERASED = "another move of its bundle is rejected", "another record of its bundle is deleted"

#: What happens more often than the rest, by request: what depends on where a replacement is, and when.
OFTEN = {
    "eviction": 8 * (REJECTED, ERASED, POLICY_CHANGED),
    "look": 6 * (RECORD_DELETED, POLICY_CHANGED),
    "rollout": (*8 * (BACK, COMES_BACK), DELETED, DELETED),
}

#: What meets a move that still waits for the answer: this one comes late, too.
AWAITED = {
    "eviction": (REJECTED, ERASED, POLICY_CHANGED),
    "look": (RECORD_DELETED, POLICY_CHANGED),
}


class MoveFaults:
    """Acts at the requests of moves: an :class:`simulation.network.Interference`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self._random = scene.random
        self._due: dict[Exchange, tuple[str, dict[str, str]]] = {}  #: what it is

    def arrives(self, exchange: Exchange) -> None:
        """A request is at the API server and will be carried out now."""
        found = _kind_of(exchange)
        if found is None:
            return
        kind, names = found
        if kind == "look" and self._scene.faults.at_write(FaultKind.SURGE_TURNED_BACK):
            self._turn_surge_back(exchange, names)
        if kind in SLOW and self._scene.faults.at_write(FaultKind.MOVE_ANSWER_LATE):
            self._delay(exchange)
        tries = 2 if kind == "rollout" else 1
        if any(self._scene.faults.at_write(FaultKind.MOVE_MEDDLED) for _ in range(tries)):
            if kind not in MADE and self._random.random() < 0.5:
                self._act(exchange, kind, names)
            else:
                self._due[exchange] = found

    def has_taken_effect(self, exchange: Exchange) -> None:
        """The same exchange, before its answer is sent."""
        found = self._due.pop(exchange, None)
        if found is not None:
            self._act(exchange, *found)

    def _turn_surge_back(self, exchange: Exchange, names: Mapping[str, str]) -> None:
        """The next replacement comes to the pod's node while the rollout of the last one is taken back."""
        record = self._record(exchange, "look", names)
        if record is None or not self._is_begun(names["ns"], record["spec"]):
            return
        if attempted(lambda: self._come_back(names["ns"], record["spec"])):
            exchange.fault = FaultKind.OLD_ANSWER
            self._scene.faults.count(FaultKind.SURGE_TURNED_BACK)
            self._scene.tell("deed", f"at the look of record {record['metadata']['name']}: {COMES_BACK}")

    def _delay(self, exchange: Exchange) -> None:
        """Its answer comes late."""
        exchange.fault = FaultKind.OLD_ANSWER
        self._scene.faults.count(FaultKind.MOVE_ANSWER_LATE)

    def _act(self, exchange: Exchange, kind: str, names: Mapping[str, str]) -> None:
        record = self._record(exchange, kind, names)
        if record is None:
            return
        ways = self._ways(record)
        what = self._random.choice([*ways, *(name for name in OFTEN.get(kind, ()) if name in ways)])
        if attempted(ways[what]):
            self._scene.faults.count(FaultKind.MOVE_MEDDLED)
            is_late = FaultKind.MOVE_ANSWER_LATE in self._scene.faults.enabled
            if is_late and exchange.fault is None and what in AWAITED.get(kind, ()):
                self._delay(exchange)
            asked = f"{exchange.request.method} {exchange.request.path}"
            self._scene.tell("deed", f"at {asked}: {what} (record {record['metadata']['name']})")

    def _record(self, exchange: Exchange, kind: str, names: Mapping[str, str]) -> Obj | None:
        """The record of the move that a request is about."""
        if kind == "record":
            name = str(_body(exchange).get("metadata", {}).get("name", ""))
            return self._scene.found(RECORDS, names["ns"], name)
        if kind == "status":
            return self._scene.found(RECORDS, names["ns"], names["record"])
        pod = names.get("pod")

        def is_it(one: Obj) -> bool:
            surge = one["spec"].get("surge") or {}
            is_meant = one["spec"]["pod"]["name"] == pod or surge.get("deployment") == names.get(
                "deployment", "-"
            )
            return is_meant and (one.get("status") or {}).get("phase") in ("Planned", "Evicting", "Surging")

        return self._scene.chosen(RECORDS, is_it)

    # -- what happens --------------------------------------------------------------------------------------

    def _ways(self, record: Obj) -> dict[str, Way]:
        meta, spec = record["metadata"], record["spec"]
        ways: dict[str, Way] = {
            "the stop button is pressed": self._stop,
            RECORD_DELETED: lambda: self._api.delete(RECORDS, meta["namespace"], meta["name"]),
            POLICY_CHANGED: lambda: self._change_policy(spec["policy"]),
            BACK: lambda: self._turn_back(spec["fromNode"]),
        }
        if self._is_begun(meta["namespace"], spec):
            ways[COMES_BACK] = lambda: self._come_back(meta["namespace"], spec)
        if spec.get("mode") == "Approve":
            ways["its answer is taken back"] = lambda: self._answer(record)
        if spec.get("bundle"):
            ways[REJECTED] = lambda: self._of_bundle(record, self._answer)
            ways[ERASED] = lambda: self._of_bundle(record, self._delete)
        if (name := self._deployment(spec)) != "":
            ways |= {
                "its workload is scaled up": lambda: self._edit(meta["namespace"], name, _scaled(+1)),
                "its workload is scaled down": lambda: self._edit(meta["namespace"], name, _scaled(-1)),
                "its workload is rolled out": lambda: self._edit(
                    meta["namespace"], name, _rolled_out(self._scene.named("edit"))
                ),
                GROWS: lambda: self._grow_there(record, name),
                DELETED: lambda: self._scene.later(lambda: self._delete_youngest(spec), SOON_S),
            }
        return ways

    def _stop(self) -> None:
        def set_to(value: str | None) -> None:
            self._api.patch("namespaces", None, HOME, {"metadata": {"annotations": {STOP: value}}})

        set_to("true")
        self._scene.later(lambda: set_to(None), WHILE_S)

    def _change_policy(self, name: str) -> bool:
        """It asks people, or does not; or is suspended for a while."""
        policy = self._scene.found(POLICIES, None, name)
        if policy is None or "rebalancing" not in policy["spec"]:
            return False
        before = copied(policy["spec"])
        changed = copied(policy)
        if self._random.random() < 0.3:
            changed["spec"]["suspend"] = True
        else:
            mode = changed["spec"]["rebalancing"].get("mode")
            changed["spec"]["rebalancing"]["mode"] = "DryRun" if mode == "Enforce" else "Enforce"
        self._api.update(POLICIES, changed)

        def undo() -> None:
            again = copied(self._api.get(POLICIES, None, name))
            self._api.update(POLICIES, {**again, "spec": before})

        self._scene.later(undo, WHILE_S)
        return True

    def _turn_back(self, name: str) -> bool:
        """The pod's node is open again, and all others are closed for a while."""
        nodes = [copied(each) for each in self._scene.cluster.objects("nodes")]
        closed = [each["metadata"]["name"] for each in nodes if each["metadata"]["name"] != name]
        if len(closed) == len(nodes):
            return False
        for each in nodes:
            is_it = each["metadata"]["name"] == name
            each["spec"]["unschedulable"] = not is_it
            if is_it:
                each["spec"]["taints"] = []
            self._api.update("nodes", each, Write())

        def undo() -> None:
            for one in closed:
                attempted(partial(self._open, one))

        self._scene.later(undo, WHILE_S)
        return True

    def _is_begun(self, namespace: str, spec: Obj) -> bool:
        """Whether its rollout has been started: the next look at the Deployment is to take it back."""
        surge = spec.get("surge")
        found = None if surge is None else self._scene.found(DEPLOYMENTS, namespace, surge["deployment"])
        marks = {} if found is None else found["spec"]["template"]["metadata"].get("annotations") or {}
        return SURGED in marks

    def _come_back(self, namespace: str, spec: Obj) -> None:
        """As long as an old pod stands on a node, the replacement goes to any other."""
        if self._scene.found("pods", namespace, spec["pod"]["name"]):
            self._api.delete("pods", namespace, spec["pod"]["name"])
        self._scene.later(lambda: self._bring_back(spec), SHORTLY_S)

    def _bring_back(self, spec: Obj) -> bool:
        """The replacement is deleted, too; the next one goes where the old pod was."""
        owner = self._deployment(spec)
        for each in self._scene.cluster.objects("pods"):
            meta = each["metadata"]
            if SURGED in (meta.get("annotations") or {}) and (meta.get("labels") or {}).get("app") == owner:
                self._api.delete("pods", meta["namespace"], meta["name"])
        return self._turn_back(spec["fromNode"])

    def _open(self, name: str) -> None:
        node = copied(self._api.get("nodes", None, name))
        node["spec"]["unschedulable"] = False
        self._api.update("nodes", node, Write())

    def _answer(self, record: Obj) -> None:
        """Somebody rejects a proposal, or takes the answer back."""
        meta = record["metadata"]
        answer = {"metadata": {"annotations": {APPROVED: self._random.choice(("false", None))}}}
        self._api.patch(RECORDS, meta["namespace"], meta["name"], answer)

    def _delete(self, record: Obj) -> None:
        self._api.delete(RECORDS, record["metadata"]["namespace"], record["metadata"]["name"])

    def _of_bundle(self, record: Obj, act: Callable[[Obj], None]) -> bool:
        mine = (record["spec"]["policy"], record["spec"]["bundle"]["name"])

        def is_other(one: Obj) -> bool:
            theirs = (one["spec"]["policy"], (one["spec"].get("bundle") or {}).get("name"))
            is_same = one["metadata"]["name"] == record["metadata"]["name"]
            return theirs == mine and not is_same and (one.get("status") or {}).get("phase") == "Planned"

        other = self._scene.chosen(RECORDS, is_other)
        if other is None:
            return False
        act(other)
        return True

    # -- its workload --------------------------------------------------------------------------------------

    def _deployment(self, spec: Obj) -> str:
        """The name of the Deployment whose pod is moved, "" for none."""
        owner = spec.get("owner") or {}
        if owner.get("kind") != "ReplicaSet":
            return str((spec.get("surge") or {}).get("deployment", ""))
        return str(owner["name"]).rpartition("-")[0]

    def _edit(self, namespace: str, name: str, change: Callable[[Obj], None]) -> None:
        workload = copied(self._api.get(DEPLOYMENTS, namespace, name))
        change(workload)
        self._api.update(DEPLOYMENTS, workload)

    def _grow_there(self, record: Obj, name: str) -> None:
        """The new pod comes to the node that the moved one is to leave."""
        self._turn_back(record["spec"]["fromNode"])
        self._edit(record["metadata"]["namespace"], name, _scaled(+1))

    def _delete_youngest(self, spec: Obj) -> bool:
        """That may be the replacement."""
        owner = self._deployment(spec)
        found = [
            each
            for each in self._scene.cluster.objects("pods")
            if (each["metadata"].get("labels") or {}).get("app") == owner
            and each["metadata"]["uid"] != spec["pod"]["uid"]
        ]
        if not found:
            return False
        meta = max(found, key=lambda each: int(each["metadata"]["resourceVersion"]))["metadata"]
        self._api.delete("pods", meta["namespace"], meta["name"])
        return True


def _scaled(more: int) -> Callable[[Obj], None]:
    def change(workload: Obj) -> None:
        workload["spec"]["replicas"] = max(1, workload["spec"]["replicas"] + more)

    return change


def _rolled_out(edit: str) -> Callable[[Obj], None]:
    def change(workload: Obj) -> None:
        workload["spec"]["template"]["metadata"].setdefault("annotations", {})["edited"] = edit

    return change


def _kind_of(exchange: Exchange) -> tuple[str, dict[str, str]] | None:
    asked = f"{exchange.request.method} {exchange.request.path}"
    for kind, pattern in REQUESTS.items():
        if found := pattern.fullmatch(asked):
            return kind, found.groupdict()
    return None


def _body(exchange: Exchange) -> Obj:
    try:
        parsed = orjson.loads(exchange.request.body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
