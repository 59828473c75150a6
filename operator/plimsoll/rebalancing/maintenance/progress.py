"""Decides how far a NodeMaintenance has come and what is next, from facts about its nodes; pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from plimsoll.api.schema.conditions import ConditionStatus, with_condition
from plimsoll.api.v1alpha1.node_maintenance import (
    DRAINED,
    MaintainedMove,
    MaintainedNode,
    MaintainedNodePhase,
    MaintenancePhase,
    NodeMaintenance,
    NodeMaintenanceStatus,
)
from plimsoll.model.counted import agreeing, counted

#: Moves that a status shows of a node.
MOVES = 20

#: Longest message about a node, in characters.
SENTENCE = 1024

#: Nodes that a sentence names.
NAMED = 3


class NodeFacts(Struct, frozen=True):
    """One node of a maintenance, as it is.

    Attributes:
        exists: Whether there is such a node.
        zone: The value of its zone label, "" without one.
        leaving: Number of pods on it that are to leave.
        is_closed: Whether it has our taint.
        moving: Number of moves off it that have not ended.
    """

    name: str
    exists: bool = True
    zone: str = ""
    leaving: int = 0
    is_closed: bool = False
    moving: int = 0

    @property
    def is_drained(self) -> bool:
        """Whether it is closed, and nothing is left to move."""
        return self.exists and self.is_closed and not self.leaving and not self.moving


class NodePlan(Struct, frozen=True):
    """What the latest plan says of a node: its moves, or why it has none."""

    moves: tuple[MaintainedMove, ...] = ()
    reason: str = ""
    message: str = ""


class MaintenanceFacts(Struct, frozen=True):
    """What decides about a maintenance.

    Attributes:
        now: With a time zone.
        nodes: In the order in which they are tried.
        plans: The latest plan, by node; nodes that were not planned are left out.
        is_open: Whether its window is open.
        opens: A clause about when it opens next, "" if that is not known.
        damage: A sentence about the first move that failed, "" if none has.
        invalid: Why the spec cannot be carried out, "" if it can be.
    """

    now: datetime
    nodes: Sequence[NodeFacts]
    plans: Mapping[str, NodePlan]
    is_open: bool = True
    opens: str = ""
    damage: str = ""
    invalid: str = ""


class Batch(Struct, frozen=True):
    """The nodes that may be begun now.

    Attributes:
        nodes: In the order in which they are tried.
        most: How many of them, at most.
        busy_zones: Number of nodes that are being emptied already, by zone.
        empty: Those of them that have nothing to move and need to be closed only.
    """

    nodes: tuple[str, ...] = ()
    most: int = 0
    busy_zones: Mapping[str, int] = {}
    empty: tuple[str, ...] = ()


def next_batch(maintenance: NodeMaintenance, facts: MaintenanceFacts) -> Batch:
    """The nodes that may be begun: those that wait, as far as the others under way allow it."""
    busy = [each for each in facts.nodes if each.moving]
    zones = dict(Counter(each.zone for each in busy if each.zone))
    waiting = [each for each in facts.nodes if each.exists and not each.moving and not each.is_drained]
    free = max(0, maintenance.spec.max_concurrent - len(busy))
    empty = tuple(each.name for each in waiting if not each.leaving and not each.is_closed)[:free]
    nodes = tuple(each.name for each in waiting if each.leaving)
    return Batch(nodes, free - len(empty), zones, empty)


def phase_of(maintenance: NodeMaintenance, facts: MaintenanceFacts) -> MaintenancePhase:  # noqa: PLR0911 - one rule after the other
    """How far the maintenance has come; an end stays until the spec changes."""
    known, spec = maintenance.status, maintenance.spec
    if facts.invalid:
        return MaintenancePhase.INVALID
    if spec.suspend:
        return MaintenancePhase.SUSPENDED
    if (
        known is not None
        and known.observed_generation == maintenance.metadata.generation
        and known.phase in (MaintenancePhase.STOPPED, MaintenancePhase.EXPIRED)
    ):
        return known.phase
    if facts.nodes and all(each.is_drained for each in facts.nodes):
        return MaintenancePhase.DRAINED
    if facts.damage:
        return MaintenancePhase.STOPPED
    if spec.deadline is not None and facts.now >= spec.deadline:
        return MaintenancePhase.EXPIRED
    if any(each.moving for each in facts.nodes):
        return MaintenancePhase.DRAINING
    left = [each for each in facts.nodes if not each.is_drained]
    if left and all(not each.exists or _is_blocked(each, facts) for each in left):
        return MaintenancePhase.BLOCKED
    if not facts.is_open or not any(each.is_drained for each in facts.nodes):
        return MaintenancePhase.PENDING
    return MaintenancePhase.DRAINING


def status_of(maintenance: NodeMaintenance, facts: MaintenanceFacts) -> NodeMaintenanceStatus:
    """The status that says so."""
    known, generation = maintenance.status, maintenance.metadata.generation
    phase = phase_of(maintenance, facts)
    is_same = known is not None and known.observed_generation == generation
    nodes = tuple(_node_status(each, facts) for each in facts.nodes)
    done = phase is MaintenancePhase.DRAINED
    drained = sum(each.phase is MaintainedNodePhase.DRAINED for each in nodes)
    start = known.start_time if known is not None and is_same and known.start_time else facts.now
    expected = None
    if phase is MaintenancePhase.DRAINING:
        is_kept = known is not None and known.drained == drained
        expected = (
            known.expected_end if known and is_kept else _expected_end(start, facts.now, drained, len(nodes))
        )
    return NodeMaintenanceStatus(
        observed_generation=generation,
        phase=phase,
        start_time=start,
        drained=drained,
        total=len(nodes),
        expected_end=expected,
        nodes=nodes,
        conditions=with_condition(
            known.conditions if known is not None else (),
            DRAINED,
            ConditionStatus.TRUE if done else ConditionStatus.FALSE,
            reason=phase.value,
            message=_message(maintenance, phase, facts, nodes),
            now=facts.now,
            generation=generation,
        ),
    )


def _expected_end(start: datetime, now: datetime, drained: int, total: int) -> datetime | None:
    """When the last node is drained at the pace so far, in whole seconds; None before the first one is."""
    if not drained:
        return None
    left = (now - start) / drained * (total - drained)
    return (now + left).replace(microsecond=0)


def _is_blocked(node: NodeFacts, facts: MaintenanceFacts) -> bool:
    plan = facts.plans.get(node.name)
    return bool(node.leaving and plan is not None and plan.reason)


def _node_status(node: NodeFacts, facts: MaintenanceFacts) -> MaintainedNode:
    plan = facts.plans.get(node.name, NodePlan())
    if not node.exists:
        return MaintainedNode(name=node.name, phase=MaintainedNodePhase.MISSING)
    if node.is_drained:
        return MaintainedNode(name=node.name, phase=MaintainedNodePhase.DRAINED)
    phase = MaintainedNodePhase.WAITING
    if node.moving:
        phase = MaintainedNodePhase.DRAINING
    elif _is_blocked(node, facts):
        phase = MaintainedNodePhase.BLOCKED
    is_blocked = phase is MaintainedNodePhase.BLOCKED
    return MaintainedNode(
        name=node.name,
        phase=phase,
        pods=node.leaving,
        reason=plan.reason if is_blocked else None,
        message=plan.message[:SENTENCE] if is_blocked else None,
        moves=plan.moves[:MOVES],
    )


def _message(
    maintenance: NodeMaintenance,
    phase: MaintenancePhase,
    facts: MaintenanceFacts,
    nodes: Sequence[MaintainedNode],
) -> str:
    done = sum(each.phase is MaintainedNodePhase.DRAINED for each in nodes)
    sentences = [f"{done} of {counted(len(nodes), 'node')} {agreeing(done, 'is', 'are')} drained"]
    match phase:
        case MaintenancePhase.INVALID:
            return facts.invalid
        case MaintenancePhase.SUSPENDED:
            sentences.append("spec.suspend is true: nothing is begun, and all nodes are open")
        case MaintenancePhase.STOPPED:
            known = maintenance.status
            before = known.conditions if known is not None and not facts.damage else ()
            kept = next((each.message for each in before if each.type == DRAINED), "")
            return kept or "; ".join(
                (
                    *sentences,
                    f"stopped: {facts.damage}",
                    "change the spec, or delete the object and create it again, to go on",
                )
            )
        case MaintenancePhase.EXPIRED:
            sentences.append("the deadline has passed")
        case _ if not facts.is_open:
            sentences.append(f"the window is closed{facts.opens}")
        case _:
            pass
    missing = [each.name for each in nodes if each.phase is MaintainedNodePhase.MISSING]
    if missing:
        sentences.append(f"there is no node {', '.join(missing[:NAMED])}")
    blocked = [each for each in nodes if each.phase is MaintainedNodePhase.BLOCKED]
    sentences += [f"node {each.name} is not emptied: {each.message}" for each in blocked[:NAMED]]
    if len(blocked) > NAMED:
        sentences.append(f"and {counted(len(blocked) - NAMED, 'further node')}")
    if not nodes:
        sentences.append("nodeSelector matches no node")
    return "; ".join(sentences)
