"""Says which nodes are unhealthy by their conditions, and which of them may be closed.

Formula::

    matches(node)   = a condition of the node has a listed type and status
    unhealthy(node) = such a condition has held for its timeoutSeconds, since its lastTransitionTime
    looks_ill(node) = matches(node), for however short, or the node is not ready
    closed          = nodes with the taint that match, or have matched less than recoverySeconds ago
    begun           = unhealthy nodes without the taint, the longest unhealthy first, while fewer than
                      maxNodes nodes have the taint

Units: seconds; numbers of nodes.
Edges: when ``looks_ill`` is true of half of all nodes or more, none is begun and no pod is moved, as the
fault is then more likely with who reports than with the nodes; those that are closed stay so. A condition
without ``lastTransitionTime`` never times out. A condition that is gone from a node no longer matches.
Source: our own. Names are those of Cluster API's MachineHealthCheck (``unhealthyNodeConditions``, v1beta2);
half of the nodes is near kube-controller-manager's ``--unhealthy-zone-threshold`` (0.55).
"""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Struct
from pydantic import Field, StrictInt, StrictStr

from plimsoll.framework import Node, PluginArgs
from plimsoll.framework.descheduling.context import is_unready
from plimsoll.framework.selectors import is_marked_unhealthy
from plimsoll.model.counted import counted
from plimsoll.model.kinds.node import NodeCondition

Seconds = Annotated[StrictInt, Field(ge=0, le=31_536_000)]


class UnhealthyNodeCondition(PluginArgs):
    """A condition that makes a node unhealthy."""

    type: StrictStr = Field(min_length=1, description="Type of the node's condition.")
    status: StrictStr = Field(
        default="True",
        pattern="^(True|False|Unknown)$",
        description="Status of the condition: True, False or Unknown.",
    )
    timeout_seconds: Seconds = Field(
        default=300, description="Seconds for which it must have held before anything is done."
    )


#: What node-problem-detector reports by default and no pod can live with.
DEFAULT_CONDITIONS = (
    UnhealthyNodeCondition(type="KernelDeadlock"),
    UnhealthyNodeCondition(type="ReadonlyFilesystem"),
)


class UnhealthyNodesArgs(PluginArgs):
    """Which nodes are unhealthy, and how many of them are closed."""

    unhealthy_node_conditions: tuple[UnhealthyNodeCondition, ...] = Field(
        default=DEFAULT_CONDITIONS,
        min_length=1,
        max_length=32,
        description="Conditions of which one makes a node unhealthy.",
    )
    max_nodes: Annotated[StrictInt, Field(ge=1)] = Field(
        default=1, description="Nodes that are closed at the same time, at most."
    )
    recovery_seconds: Seconds = Field(
        default=300, description="Seconds for which a node must be healthy again before it is opened."
    )


class NodeHealth(Struct, frozen=True):
    """The judgement about all nodes.

    Attributes:
        closed: Why nodes are to be closed or stay closed, keyed by name.
        leaving: Those whose pods are to leave: they match a condition now.
        waiting: Unhealthy nodes that are not closed, as ``maxNodes`` are already; with the reason.
        ill: Names of all nodes that look ill.
        halted: Why nothing new is done, as a sentence; "" if it is.
    """

    closed: dict[str, str]
    leaving: tuple[str, ...]
    waiting: dict[str, str]
    ill: frozenset[str]
    halted: str


def health_of(
    args: UnhealthyNodesArgs,
    nodes: Collection[Node],
    is_selected: Callable[[Node], bool],
    now: datetime,
    also_closed: Collection[str] = (),
) -> NodeHealth:
    """The judgement.

    Args:
        args: The conditions and bounds.
        nodes: All nodes of the cluster.
        is_selected: Whether a node may be closed at all.
        now: The present time, with a time zone.
        also_closed: Names of nodes that are about to get the taint.
    """
    marked = {each.name for each in nodes if is_marked_unhealthy(each)}.union(also_closed)
    matching = {each.name: found for each in nodes if (found := list(_matching(each, args)))}
    ill = matching.keys() | {each.name for each in nodes if is_unready(each)}
    halted = (
        f"{counted(len(ill), 'node')} of {len(nodes)} look unhealthy, which is half or more: no node is"
        " closed and no pod is moved until fewer do; see whether the nodes or their reports are at fault"
        if ill and 2 * len(ill) >= len(nodes)
        else ""
    )
    closed, due = dict[str, str](), list[tuple[datetime, str]]()
    for node in filter(is_selected, nodes):
        held = matching.get(node.name, [])
        if node.name in marked:
            if held or _is_recent(node, args, now):
                closed[node.name] = _why(held) if held else "was unhealthy until recently"
            continue
        times = [
            since
            for condition, limit in held
            if (since := condition.last_transition_time) is not None and now - since >= limit
        ]
        if times:
            due.append((min(times), node.name))
    due.sort()
    room = 0 if halted else max(args.max_nodes - len(marked), 0)
    closed |= {name: _why(matching[name]) for _, name in due[:room]}
    return NodeHealth(
        closed,
        () if halted else tuple(name for name in closed if name in matching),
        {name: _why(matching[name]) for _, name in due[room:]},
        frozenset(ill),
        halted,
    )


def _matching(node: Node, args: UnhealthyNodesArgs) -> Iterator[tuple[NodeCondition, timedelta]]:
    """The node's conditions that are listed, each with the time for which it must have held."""
    for condition in node.status.conditions:
        for each in args.unhealthy_node_conditions:
            if (condition.type, condition.status) == (each.type, each.status):
                yield condition, timedelta(seconds=each.timeout_seconds)


def _is_recent(node: Node, args: UnhealthyNodesArgs, now: datetime) -> bool:
    """Whether a condition of a listed type changed less than ``recoverySeconds`` ago."""
    types = {each.type for each in args.unhealthy_node_conditions}
    return any(
        condition.type in types
        and condition.last_transition_time is not None
        and now - condition.last_transition_time < timedelta(seconds=args.recovery_seconds)
        for condition in node.status.conditions
    )


def _why(held: list[tuple[NodeCondition, timedelta]]) -> str:
    """The condition that has held longest, as a clause."""
    dated = [(since, each) for each, _ in held if (since := each.last_transition_time) is not None]
    since, first = min(dated, key=lambda each: each[0], default=(None, held[0][0]))
    told = "" if since is None else f" since {since.strftime('%Y-%m-%dT%H:%M:%SZ')}"
    return f"has the condition {first.type}={first.status}{told}"
