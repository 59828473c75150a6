"""Defines what extenders are asked: an ask makes the body that is sent and judges the answer.

``read`` raises AnswerError for an answer that cannot be used.
:mod:`plimsoll.scheduling.extenders.client` sends them.

Source: kube-scheduler v1.36, ``pkg/scheduler/extender.go``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from plimsoll.engine.extenders.extender import Extender
from plimsoll.framework import Node, PodInfo
from plimsoll.framework.extension_points import PreemptionCandidate
from plimsoll.model.kinds import extender_wire as wire

#: Points of ours for one of an extender's: 100 of 10.
SCALE = 10


@dataclass(frozen=True, slots=True)
class Failure:
    """No usable answer, in a sentence."""

    message: str


class NodeDocuments:
    """Nodes as JSON, kept while they do not change: thousands of them may be sent for each pod."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Node, bytes]] = {}

    def of(self, nodes: Sequence[Node]) -> list[bytes]:
        """Their documents."""
        found = []
        for node in nodes:
            known = self._known.get(node.name)
            if known is None or known[0] is not node:
                known = self._known[node.name] = (node, wire.node_document(node))
            found.append(known[1])
        if len(self._known) > 2 * len(nodes) + 1000:
            self._known = {node.name: self._known[node.name] for node in nodes}
        return found


@dataclass(frozen=True, slots=True)
class _NodesAsk:
    """A question about nodes."""

    extender: Extender
    nodes: tuple[Node, ...]
    documents: NodeDocuments = field(repr=False, compare=False)

    def body(self, pod: bytes) -> bytes:
        """``ExtenderArgs``."""
        documents = None if self.extender.node_cache_capable else self.documents.of(self.nodes)
        return wire.nodes_body(pod, [node.name for node in self.nodes], documents)


@dataclass(frozen=True, slots=True)
class FilterAsk(_NodesAsk):
    """Which of these nodes may the pod go to?"""

    point = "filter"

    @property
    def verb(self) -> str:
        """Where to send it."""
        return self.extender.filter_verb

    def read(self, content: bytes) -> wire.FilterAnswer:
        """The answer."""
        names = frozenset(node.name for node in self.nodes)
        return wire.filter_answer(content, names, names=self.extender.node_cache_capable)


@dataclass(frozen=True, slots=True)
class PrioritizeAsk(_NodesAsk):
    """How good are these nodes, from 0 to 10?"""

    point = "prioritize"

    @property
    def verb(self) -> str:
        """Where to send it."""
        return self.extender.prioritize_verb

    def read(self, content: bytes) -> Mapping[str, int]:
        """Weighted points, on the scale of our scores, by node name."""
        factor = self.extender.weight * SCALE
        return {node: score * factor for node, score in wire.scores_answer(content).items()}


@dataclass(frozen=True, slots=True)
class PreemptAsk:
    """Whom may the pod drive away, and from which of these nodes?

    Attributes:
        extender: Who is asked.
        candidates: What preemption came to, by node name.
        removable: Pods by uid that may leave, by node name: all of lower priority.
    """

    extender: Extender
    candidates: Mapping[str, PreemptionCandidate]
    removable: Mapping[str, Mapping[str, PodInfo]]

    point = "preempt"

    @property
    def verb(self) -> str:
        """Where to send it."""
        return self.extender.preempt_verb

    def body(self, pod: bytes) -> bytes:
        """``ExtenderPreemptionArgs``."""
        victims = {
            node: ([victim.pod for victim in each.victims], each.violations)
            for node, each in self.candidates.items()
        }
        return wire.victims_body(pod, victims, names_only=self.extender.node_cache_capable)

    def read(self, content: bytes) -> Mapping[str, PreemptionCandidate]:
        """The candidates that are left, maybe with other victims.

        Raises:
            AnswerError: It is no answer, names a node or a pod that was no candidate, or,
                unless the extender is ignorable, a node without victims.
        """
        left = {}
        for node, meta in wire.victims_answer(content).items():
            if node not in self.candidates:
                raise AnswerError(f'claims to preempt on node "{node}", which was no candidate')
            if not meta.uids:
                if self.extender.ignorable:
                    continue
                raise AnswerError(f'expected at least one victim pod on node "{node}"')
            removable = self.removable[node]
            for uid in meta.uids:
                if uid not in removable:
                    raise AnswerError(
                        f"claims to preempt pod (UID: {uid}) on node: {node}, but no pod of lower priority"
                        " there has it"
                    )
            left[node] = PreemptionCandidate(tuple(removable[uid] for uid in meta.uids), meta.violations)
        return left


@dataclass(frozen=True, slots=True)
class BindAsk:
    """Bind this pod, please."""

    extender: Extender
    pod: PodInfo
    node: str

    point = "bind"

    @property
    def verb(self) -> str:
        """Where to send it."""
        return self.extender.bind_verb

    def body(self, pod: bytes) -> bytes:  # noqa: ARG002 - the pod is named, not sent
        """``ExtenderBindingArgs``."""
        return wire.binding_body(self.pod.pod, self.node)

    def read(self, content: bytes) -> None:
        """Nothing, when it is bound."""
        wire.binding_answer(content)


AnswerError, ReportedError = wire.AnswerError, wire.ReportedError


Ask: TypeAlias = FilterAsk | PrioritizeAsk | PreemptAsk | BindAsk
