"""WriteFaults act right before or right after a write of a chosen kind takes effect.

That is where a program has decided on what was true a moment ago, or has changed something that it does not
know of yet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from roadstead.kubelets.devices import DRIVER
from roadstead.store.api import Write
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import RECORDS
from simulation.deeds.people import replace_pod
from simulation.deeds.scene import Scene, Way, attempted
from simulation.exchanges import Exchange
from simulation.faults import FaultKind
from simulation.replica import Replica
from simulation.world.devices import results_of, taken

#: Which write a request is, by method and path.
WRITES = [
    (FaultKind.AT_BINDING, re.compile(r"POST /api/v1/namespaces/(?P<ns>[^/]+)/pods/(?P<pod>[^/]+)/binding")),
    (
        FaultKind.AT_EVICTION,
        re.compile(r"POST /api/v1/namespaces/(?P<ns>[^/]+)/pods/(?P<pod>[^/]+)/eviction"),
    ),
    (FaultKind.AT_EVICTION, re.compile(r"DELETE /api/v1/namespaces/(?P<ns>[^/]+)/pods/(?P<pod>[^/]+)")),
    (
        FaultKind.AT_POD_STATUS,
        re.compile(r"(PATCH|PUT) /api/v1/namespaces/(?P<ns>[^/]+)/pods/(?P<pod>[^/]+)/status"),
    ),
    (FaultKind.AT_LEASE, re.compile(r"(POST|PUT|PATCH) /apis/coordination.k8s.io/v1/.+/leases(/.+)?")),
    (
        FaultKind.AT_RECORD_STATUS,
        re.compile(
            r"(PATCH|PUT) /apis/plimsoll.dev/[^/]+/namespaces/(?P<ns>[^/]+)"
            r"/evictions/(?P<record>[^/]+)/status"
        ),
    ),
    (
        FaultKind.AT_RECORD,
        re.compile(
            r"(POST|PUT|PATCH|DELETE) /apis/plimsoll.dev/[^/]+/namespaces/(?P<ns>[^/]+)"
            r"/evictions(/(?P<record>[^/]+))?"
        ),
    ),
    (
        FaultKind.AT_CLAIM_STATUS,
        re.compile(
            r"(PATCH|PUT) /apis/resource.k8s.io/v1/namespaces/(?P<ns>[^/]+)"
            r"/resourceclaims/(?P<claim>[^/]+)/status"
        ),
    ),
    (
        FaultKind.AT_POLICY_STATUS,
        re.compile(r"(PATCH|PUT) /apis/plimsoll.dev/[^/]+/schedulingpolicies/.+/status"),
    ),
]

#: What may happen at any write, in addition to what happens to the sender.
ANYWHERE = (
    FaultKind.API_RESTART,
    FaultKind.COMPACTION,
    FaultKind.LEASE_STOLEN,
    FaultKind.LEASE_STOLEN,
)

#: What else may happen at a write of that kind.
DEEDS_AT: dict[FaultKind, tuple[FaultKind, ...]] = {
    FaultKind.AT_RECORD: (FaultKind.BUDGET_CHANGED, FaultKind.BUDGET_CHANGED, FaultKind.POLICY_EDITED),
    FaultKind.AT_RECORD_STATUS: (
        FaultKind.BUDGET_CHANGED,
        FaultKind.RECORD_STATUS_EDITED,
        FaultKind.RECORD_ANNOTATED,
        FaultKind.RECORD_HELD,
    ),
    FaultKind.AT_EVICTION: (
        FaultKind.BUDGET_CHANGED,
        FaultKind.WORKLOAD_SCALED,
        FaultKind.SCALED_RAPIDLY,
        FaultKind.ROLLOUT,
    ),
    FaultKind.AT_POLICY_STATUS: (FaultKind.POLICY_EDITED,),
}


class WriteFaults:
    """Acts at writes: an :class:`simulation.network.Interference`.

    Args:
        ways: How each deed is done.
    """

    def __init__(self, scene: Scene, ways: Mapping[FaultKind, Way]) -> None:
        self._scene = scene
        self._random = scene.random
        self._ways = ways
        self._due: dict[Exchange, FaultKind] = {}  #: what happens after it

    def arrives(self, exchange: Exchange) -> None:
        """A request is at the API server and will be carried out now."""
        found = _kind_of(exchange)
        if found is None or not self._scene.faults.at_write(found[0]):
            return
        if self._random.random() < 0.5:
            self._act(exchange, *found, is_after=False)
        else:
            self._due[exchange] = found[0]

    def has_taken_effect(self, exchange: Exchange) -> None:
        """The same exchange, before its answer is sent."""
        if self._due.pop(exchange, None) is None:
            return
        found = _kind_of(exchange)
        assert found is not None
        self._act(exchange, *found, is_after=True)

    def _act(self, exchange: Exchange, kind: FaultKind, names: Mapping[str, str], *, is_after: bool) -> None:
        ways: dict[str, Way] = self._of_sender(exchange, is_after=is_after)
        ways |= {deed: self._ways[deed] for deed in (*ANYWHERE, *DEEDS_AT.get(kind, ()))}
        pod = self._pod(exchange, names)
        if pod is not None:
            ways |= self._of_pod(pod)
        if names.get("record"):
            ways["the record is deleted"] = lambda: self._scene.api.delete(
                RECORDS, names["ns"], names["record"]
            )
        if kind is FaultKind.AT_CLAIM_STATUS and not is_after:
            ways |= self._of_claim(exchange)
        if kind is FaultKind.AT_BINDING:
            ways |= self._of_node(_body(exchange).get("target", {}).get("name", ""))
        what = self._random.choice(list(ways))
        if attempted(ways[what]):
            self._scene.faults.count(kind)
            moment = "after" if is_after else "before"
            self._scene.tell("deed", f"{moment} {exchange.request.method} {exchange.request.path}: {what}")

    # -- what happens --------------------------------------------------------------------------------------

    def _of_sender(self, exchange: Exchange, *, is_after: bool) -> dict[str, Way]:
        name = exchange.sender.partition(".")[0]
        replica = next(each for each in self._scene.replicas if each.name == name)
        network = self._scene.network

        def drop() -> None:
            exchange.fault = FaultKind.LOST_RESPONSE if is_after else FaultKind.DROPPED_REQUEST

        return {
            "the sender is killed": replica.kill,
            "the sender stops": replica.stop,
            "the sender is paused": lambda: replica.pause(self._random.choice((0.05, 2.0, 12.0, 30.0))),
            "its clock jumps": lambda: self._jump(replica),
            "the connection is dropped": drop,
            "its watches end": lambda: network.cut(exchange.sender),
        }

    def _jump(self, replica: Replica) -> None:
        replica.clock.ahead_s += self._random.uniform(-3600.0, 3600.0)

    def _of_pod(self, pod: Obj) -> dict[str, Way]:
        api, meta = self._scene.api, pod["metadata"]

        def delete() -> None:
            api.delete("pods", meta["namespace"], meta["name"], grace_seconds=self._random.choice((None, 0)))

        return {"the pod is deleted": delete, "the pod is replaced": lambda: replace_pod(self._scene, pod)}

    def _of_claim(self, exchange: Exchange) -> dict[str, Way]:
        results = [each for each in results_of(_body(exchange)) if each["driver"] == DRIVER]
        if not results:
            return {}

        def take() -> None:
            name = self._scene.named("rival")
            taken(self._scene.cluster, name, results[0]["pool"], results[0]["device"])

        return {f"a rival takes a device ({number})": take for number in range(6)}

    def _of_node(self, name: str) -> dict[str, Way]:
        scene = self._scene

        def take_room() -> None:
            scene.cluster.bind(scene.cluster.add_pod(scene.named("foreign"), "default-scheduler"), name)

        def cordon(*, closed: bool) -> None:
            node = copied(scene.api.get("nodes", None, name))
            node["spec"]["unschedulable"] = closed
            scene.api.update("nodes", node, Write())

        def close() -> None:
            cordon(closed=True)
            scene.later(lambda: cordon(closed=False))

        def remove() -> bool:
            if len(scene.cluster.objects("nodes")) < 3:
                return False
            scene.api.delete("nodes", None, name)
            return True

        return {
            "the node is cordoned": close,
            "the node is deleted": remove,
            "another scheduler takes its room": take_room,
        }

    def _pod(self, exchange: Exchange, names: Mapping[str, str]) -> Obj | None:
        """The pod that a write is about."""
        name, namespace = names.get("pod"), names.get("ns")
        if name is None and exchange.request.method == "POST" and namespace:
            name = ((_body(exchange).get("spec") or {}).get("pod") or {}).get("name")
        elif names.get("record"):
            record = self._scene.found(RECORDS, namespace, names["record"])
            name = ((record or {}).get("spec") or {}).get("pod", {}).get("name")
        return self._scene.found("pods", namespace, name) if name else None


def _kind_of(exchange: Exchange) -> tuple[FaultKind, dict[str, str]] | None:
    if exchange.request.method == "GET":
        return None
    asked = f"{exchange.request.method} {exchange.request.path}"
    for kind, pattern in WRITES:
        if found := pattern.fullmatch(asked):
            return kind, found.groupdict()
    return None


def _body(exchange: Exchange) -> dict[str, Any]:
    try:
        parsed = orjson.loads(exchange.request.body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
