"""The policy that carries a NodeMaintenance out: strategy DrainNodes, driven by the planner Proven.

Nothing but this policy moves pods for a maintenance. So proofs, reservations, records, surges, budgets,
breakers and what happens after a restart are those of every other policy
(docs/adr/0054-node-maintenance.md).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from plimsoll.api.schema.fields import duration_s
from plimsoll.api.schema.label_selectors import compiled
from plimsoll.api.v1alpha1.node_maintenance import MOST_NODES, MaintenancePhase, NodeMaintenance
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.model.counted import counted
from plimsoll.model.kinds.node import Node
from plimsoll.model.selectors import SelectorError
from plimsoll.policies import schedule

#: The policy of maintenance ``x`` is ``nodemaintenance.x`` in records and metrics.
PREFIX = "nodemaintenance."

#: Seconds between two runs by the timetable; the operator starts runs when they are useful.
RARELY_S = 86_400

#: Protections of the evictor that a drain does not have, as ``kubectl drain`` evicts such pods.
NOT_PROTECTED = ("SystemCriticalPods",)


#: Phases in which a maintenance begins nothing more, whatever happens in the cluster.
OVER = frozenset(
    (
        MaintenancePhase.STOPPED,
        MaintenancePhase.EXPIRED,
        MaintenancePhase.SUSPENDED,
        MaintenancePhase.INVALID,
    )
)


def policy_name(maintenance: str) -> str:
    """The name of a maintenance's policy."""
    return PREFIX + maintenance


def is_of_maintenance(policy: str) -> bool:
    """Whether the policy is that of a maintenance, by its name."""
    return policy.startswith(PREFIX)


def policy_of(
    maintenance: NodeMaintenance,
    nodes: Sequence[str],
    mode: Mode,
    *,
    avoided: Collection[str] = (),
    most: int | None = None,
    busy_zones: Mapping[str, int] | None = None,
    may_surge: bool = True,
) -> SchedulingPolicy:
    """The policy of a maintenance.

    Args:
        maintenance: What is asked for.
        nodes: Nodes to empty, in this order.
        mode: Whether the moves are made or predicted.
        avoided: Further nodes on which no replacement is placed.
        most: Nodes to begin, at most; None for all.
        busy_zones: Number of nodes that are being emptied already, by zone.
        may_surge: Whether rollouts are possible at all.
    """
    spec = maintenance.spec
    args: dict[str, object] = {
        "nodes": list(nodes),
        "avoided": sorted(avoided),
        "most": most,
        "mostPerZone": spec.max_concurrent_per_zone if most is not None else None,
        "busyZones": dict(busy_zones or {}),
        "ignoreDaemonSets": spec.ignore_daemon_sets,
        "longestGraceSeconds": spec.longest_grace_seconds,
        "inTurn": mode is Mode.DRY_RUN,  # what is foreseen takes many runs
    }
    disabled = [*NOT_PROTECTED, *(("PodsWithLocalStorage",) if spec.delete_empty_dir_data else ())]
    document = {
        "metadata": {"name": policy_name(maintenance.metadata.name), "uid": maintenance.metadata.uid},
        "spec": {
            "scope": {"otherSchedulers": list(spec.other_schedulers)},
            "rebalancing": {
                "mode": mode.value,
                "schedule": {"intervalSeconds": RARELY_S},
                "strategies": [
                    {
                        "name": "DrainNodes",
                        "args": {name: each for name, each in args.items() if each is not None},
                    }
                ],
                "evictor": {
                    "minReplicas": spec.min_replicas,
                    "podProtections": {"defaultDisabled": disabled, "extraEnabled": []},
                },
                "surge": spec.surge and may_surge,
                "limits": dict.fromkeys(("total", "perNode", "perNamespace", "perMinute"), "100%"),
            },
        },
    }
    return SchedulingPolicy.from_wire(document)


def selected(maintenance: NodeMaintenance, nodes: Iterable[Node]) -> tuple[str, ...]:
    """The names of the nodes that it names or selects; selected ones are sorted by name.

    Raises:
        ValueError: The selector cannot be evaluated, or selects more nodes than a status lists.
    """
    given = maintenance.spec.node_selector
    if given is None:
        return maintenance.spec.nodes
    try:
        selector = compiled(given)
    except (SelectorError, msgspec.MsgspecError) as exc:
        raise ValueError(f"spec.nodeSelector: {exc}") from exc
    names = sorted(each.name for each in nodes if selector.matches(each.labels))
    if len(names) > MOST_NODES:
        raise ValueError(
            f"spec.nodeSelector: selects {counted(len(names), 'node')}, and a maintenance has at most "
            f"{MOST_NODES}; select fewer, in several maintenances"
        )
    return tuple(names)


def chosen(maintenance: NodeMaintenance, nodes: Iterable[Node]) -> tuple[str, ...]:
    """The names of its nodes: those that its status lists for the present spec, else as above.

    Raises:
        ValueError: As above.
    """
    status = maintenance.status
    if status is not None and status.nodes and status.observed_generation == maintenance.metadata.generation:
        return tuple(each.name for each in status.nodes)
    return selected(maintenance, nodes)


def is_over(maintenance: NodeMaintenance) -> bool:
    """Whether it begins nothing more, so that its nodes are used like others."""
    return maintenance.status is not None and maintenance.status.phase in OVER


def is_open(maintenance: NodeMaintenance, now: datetime) -> bool:
    """Whether nodes may be begun at that time, with a time zone.

    Raises:
        ValueError: The window's schedule never fires, or its time zone is unknown.
    """
    window = maintenance.spec.window
    if window is None:
        return True
    schedule.check(window.opening)
    return schedule.is_open(window.opening, duration_s(window.duration), now)


def next_opening(maintenance: NodeMaintenance, now: datetime) -> datetime | None:
    """When the window opens next, in UTC; None without a window."""
    window = maintenance.spec.window
    if window is None:
        return None
    found = schedule.next_time(window.opening, now)
    return found.astimezone(UTC) if found else None
