"""Suggests changes that let a pending pod fit; each is tested on a fork before it is returned."""

from collections.abc import Iterator
from itertools import islice

from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.framework import PodInfo
from plimsoll.inspection.explanations.examination import Examination
from plimsoll.inspection.explanations.lacks import LackKind
from plimsoll.inspection.explanations.nearest import NearMiss
from plimsoll.inspection.explanations.supposition import NodeJoins, PodsLeave, Supposition, supposed
from plimsoll.model.amounts import amount_text
from plimsoll.model.kinds.node import Node, allocatable_of
from plimsoll.planning.moves import replacement_of
from plimsoll.planning.scope import never_evict

#: Maximum number of pods tried as the pod to move, and of node shapes tried as the node to add.
TRIED_PODS, TRIED_NODES = 40, 8

#: Owners whose pods are bound to their node.
BOUND_OWNERS = frozenset(("DaemonSet", "Node"))


class Help(AnswerPart):
    """A change with which the pod fits; it was tested on a copy of the cluster."""

    kind: str = Field(description="Grant, Move, AddNode or Plan (a policy does it).")
    text: str = Field(description="Change that would help, in words.")
    node: str = Field(description="The node that then takes the pod.")


def suggestions(examination: Examination, misses: list[NearMiss]) -> list[Help]:
    """Changes that let the pod fit, the smallest first."""
    found = [
        Help(kind="Grant", text=" and ".join(each.text for each in miss.remedies), node=miss.node)
        for miss in misses
    ]
    found += islice(_moves(examination, misses), 1)
    found += islice(_nodes(examination), 1)
    return found


def _moves(examination: Examination, misses: list[NearMiss]) -> Iterator[Help]:
    """Suggestions to move one pod off a node that lacks only room, to another feasible node."""
    cluster = examination.cluster
    tried = 0
    for miss in misses:
        if any(each.kind not in (LackKind.RESOURCE, LackKind.PORT) for each in miss.lacks):
            continue
        for other in sorted(
            cluster.pods_on(cluster.rows[miss.node]), key=lambda each: (each.priority, each.key)
        ):
            owner = other.template.owner
            if (
                owner is None
                or owner.kind in BOUND_OWNERS
                or other.priority > examination.pod.priority
                or never_evict(other, cluster.objects) is not None
            ):
                continue
            tried += 1
            if tried > TRIED_PODS:
                return
            target = _target_of(examination, other, miss.node)
            if target:
                text = f"pod {other.key} moved from {miss.node} to {target}"
                yield Help(kind="Move", text=text, node=miss.node)


def _target_of(examination: Examination, other: PodInfo, node: str) -> str:
    """The node to which another pod moves to make room on a node; "" if this does not help."""
    made = supposed(examination.scheduler, examination.pod, [PodsLeave((other.uid,))])
    if node not in made.feasible():
        return ""
    made.cluster.place(examination.pod, node)
    again = Supposition(
        examination.scheduler.on(made.cluster, examination.scheduler.profile),
        replacement_of(other, made.cluster),
    )
    target = again.lands()
    return "" if target == node else target


def _nodes(examination: Examination) -> Iterator[Help]:
    """Suggestions to add a node like an existing one; the smallest shape that helps."""
    kinds: dict[object, Node] = {}
    for node in sorted(examination.cluster.nodes, key=_size):
        labels = {key: value for key, value in node.labels.items() if key != "kubernetes.io/hostname"}
        kind = (str(sorted(node.status.allocatable.items())), node.spec.taints, str(sorted(labels.items())))
        kinds.setdefault(kind, node)
    for node in islice(kinds.values(), TRIED_NODES):
        name = f"{node.name}-added"
        if name in supposed(examination.scheduler, examination.pod, [NodeJoins(node.name, name)]).feasible():
            amounts = allocatable_of(node)
            size = ", ".join(
                f"{amount_text(each, amounts.get(each, 0))} {each}" for each in ("cpu", "memory")
            )
            yield Help(kind="AddNode", text=f"a node like {node.name} ({size}) added", node=name)


def _size(node: Node) -> tuple[int, int, str]:
    amounts = allocatable_of(node)
    return amounts.get("cpu", 0), amounts.get("memory", 0), node.name
