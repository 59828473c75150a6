"""Defines the requests to extenders: each builds the body and parses the response.

:mod:`plimsoll.scheduling.extenders.client` sends them.

Source: kube-scheduler v1.36, ``pkg/scheduler/extender.go``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from plimsoll.engine.extender import Extender
from plimsoll.framework import Node, PodInfo
from plimsoll.framework.extension_points import PreemptionCandidate
from plimsoll.scheduling.extenders import wire

#: Points of our scale for one point of an extender's: 100 to 10.
SCALE = 10


class Failure(Struct, frozen=True):
    """A sentence that says why there is no usable response."""

    message: str


class NodeDocuments:
    """Caches nodes as JSON while they do not change: thousands of them may be sent for each pod."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Node, bytes]] = {}

    def of(self, nodes: Sequence[Node]) -> list[bytes]:
        """The documents of these nodes."""
        found = []
        for node in nodes:
            known = self._known.get(node.name)
            if known is None or known[0] is not node:
                known = self._known[node.name] = (node, wire.node_document(node))
            found.append(known[1])
        if len(self._known) > 2 * len(nodes) + 1000:
            self._known = {node.name: self._known[node.name] for node in nodes}
        return found


class Ask(Struct, frozen=True):
    """One request to an extender.

    Attributes:
        point: The extension point, as metrics name it.
        body: Builds the body from the pod's document.
        read: Parses the response; raises AnswerError if it cannot be used.
    """

    extender: Extender
    point: str
    verb: str
    body: Callable[[bytes], bytes]
    read: Callable[[bytes], Any]


def filter_ask(extender: Extender, nodes: Sequence[Node], documents: NodeDocuments) -> Ask:
    """Requests which of these nodes the pod may use; reads a FilterAnswer."""
    names = frozenset(node.name for node in nodes)

    def read(content: bytes) -> wire.FilterAnswer:
        return wire.filter_answer(content, names, names=extender.node_cache_capable)

    return Ask(extender, "filter", extender.filter_verb, _nodes_body(extender, nodes, documents), read)


def prioritize_ask(extender: Extender, nodes: Sequence[Node], documents: NodeDocuments) -> Ask:
    """Requests scores of nodes, 0..10; reads weighted points on the scale of our scores, by node name."""
    factor = extender.weight * SCALE

    def read(content: bytes) -> dict[str, int]:
        return {node: score * factor for node, score in wire.scores_answer(content).items()}

    body = _nodes_body(extender, nodes, documents)
    return Ask(extender, "prioritize", extender.prioritize_verb, body, read)


def _nodes_body(
    extender: Extender, nodes: Sequence[Node], documents: NodeDocuments
) -> Callable[[bytes], bytes]:
    """``ExtenderArgs``."""

    def body(pod: bytes) -> bytes:
        whole = None if extender.node_cache_capable else documents.of(nodes)
        return wire.nodes_body(pod, [node.name for node in nodes], whole)

    return body


def preempt_ask(
    extender: Extender,
    candidates: Mapping[str, PreemptionCandidate],
    removable: Mapping[str, Mapping[str, PodInfo]],
) -> Ask:
    """Requests which candidates for preemption remain; reads these by node name, maybe with other victims.

    A response must not name a node or a pod that was no candidate, nor a node without victims unless the
    extender is ignorable. ``removable`` are the pods of lower priority by uid, by node name.
    """

    def body(pod: bytes) -> bytes:
        victims = {
            node: ([victim.pod for victim in each.victims], each.violations)
            for node, each in candidates.items()
        }
        return wire.victims_body(pod, victims, names_only=extender.node_cache_capable)

    def read(content: bytes) -> dict[str, PreemptionCandidate]:
        left = {}
        for node, meta in wire.victims_answer(content).items():
            if node not in candidates:
                raise wire.AnswerError(f'claims to preempt on node "{node}", which was no candidate')
            if not meta.uids:
                if extender.ignorable:
                    continue
                raise wire.AnswerError(f'expected at least one victim pod on node "{node}"')
            for uid in meta.uids:
                if uid not in removable[node]:
                    raise wire.AnswerError(
                        f"claims to preempt pod (UID: {uid}) on node: {node}, but no pod of lower priority"
                        " there has it"
                    )
            victims = tuple(removable[node][uid] for uid in meta.uids)
            left[node] = PreemptionCandidate(victims, meta.violations)
        return left

    return Ask(extender, "preempt", extender.preempt_verb, body, read)


def bind_ask(extender: Extender, pod: PodInfo, node: str) -> Ask:
    """Requests to bind the pod, which is identified and not sent as a document; reads nothing."""
    return Ask(
        extender, "bind", extender.bind_verb, lambda _: wire.binding_body(pod.pod, node), wire.binding_answer
    )
