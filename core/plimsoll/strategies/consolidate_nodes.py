"""ConsolidateNodes: empty under-used nodes completely, or leave them unchanged.

Formula::

    candidate = requested[r] <= thresholds[r] % of allocatable[r] for all r, the least used first
    place     = a node in use, feasible for the scheduler after all earlier moves, on which then
                requested[r] + pod[r] <= (100 - headroomPercent) % of allocatable[r] for all r, and
                load[r] + expected[r] likewise for cpu and memory, if the node is measured
    target    = the most used such node, and among equals the one with the highest score

Either all pods of the node leave, each for its proven place, or none of them.

With ``minSavingPerRestart`` a node is worth emptying only if::

    price of the node per hour >= minSavingPerRestart per hour * pods that leave

and nodes that save most for each pod come first. The price is what the node states (ADR 58); a node without
one, or in another currency, is left unchanged. Each pod that leaves is one restart, replacement first or not.

With ``headroom`` a node is emptied only if afterwards so many further pods of that size fit the other nodes,
in total or in each zone; where they did not fit before, their number may not decrease::

    places(node) = min over r of floor((allocatable[r] - requested[r]) / size[r]), at most its free pods

With ``deviceThresholds`` a node is a candidate only if its use of each such class of devices is also within
the threshold, and targets are filled up with devices first. The proof finds devices for the pods.

Units: percent of a node's allocatable. Sources are judged by requests alone, targets also by their usage
where the metrics API measures it: then they also keep the distance from the thresholds of the policy's
strategies and from the peak that moves by load keep.
Edges: pods of DaemonSets and static pods stay; terminating pods do not count; a single pod that is protected,
or has no place, keeps its node unchanged. Nodes in use are those with pods that could leave: an empty node is
no target, nor is one with the taint ``plimsoll.dev/consolidating``. A node with an annotation or label that
forbids autoscalers to remove it (``docs/reference/signals.md``), that is starting, or younger than
``youngSeconds``, is left unchanged; so is one to which the strategy has moved pods within ``filledSeconds``,
so that none of them restarts a second time. Nodes that are to be drained are no targets. A node that was
emptied and is still there a quarter of an hour later ends consolidation for a day. The limits of the policy
apply, except ``perNode``. Pods of one owner leave one after another, each when the previous pod's replacement
is Ready.
Source: our own; descheduler's issues 725 and 1461 request it.
Differs: there is nothing upstream to differ from; planner Proven only.
"""

from typing import Annotated, ClassVar, Self, TypeAlias

import numpy as np
from pydantic import Field, StrictInt, StrictStr, model_validator

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.device_use import DeviceUse
from plimsoll.framework import IntArray, Node, PluginArgs, PodInfo
from plimsoll.framework.columns import CPU, MEMORY, PER_COLUMN_UNIT, LoadState
from plimsoll.framework.descheduling import (
    Bundle,
    Planner,
    Refusal,
    Strategy,
    StrategyContext,
    StrategyKind,
    Verdict,
    low_to_high,
)
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Vicinity, nodes_near
from plimsoll.framework.descheduling.measurements import Protected
from plimsoll.framework.descheduling.proposals import Candidate, Candidates
from plimsoll.framework.selectors import is_closed
from plimsoll.toolkit.descheduling.headroom import HeadroomArg, places, shortage
from plimsoll.toolkit.descheduling.leaving_pods import may_leave
from plimsoll.toolkit.descheduling.node_usage import NodeUsage, RequestedUsage
from plimsoll.toolkit.descheduling.node_utilization import Percentages, check_thresholds
from plimsoll.toolkit.descheduling.savings import LeastSaving
from plimsoll.toolkit.descheduling.starting_nodes import kept

#: Seconds for which a node is young where money is weighed, as in cluster-autoscaler.
YOUNG_S = 600

#: Seconds for which a node is left alone to which pods were moved, and where money is weighed.
FILLED_S, FILLED_WEIGHED_S = 86_400, 3_600

#: A time before all others, in seconds since the epoch.
NEVER = float("-inf")

#: Number of nodes whose markers are reported.
REMARKS = 3

DeviceUses: TypeAlias = "tuple[tuple[DeviceUse, int], ...]"
"""The use of classes of devices, each with its threshold."""


class ConsolidateNodesArgs(PluginArgs):
    """Arguments; the strategy does not exist upstream."""

    thresholds: Percentages = Field(
        default={"cpu": 50, "memory": 50},
        description="Percent by resource, up to which a node is worth emptying; its keys are what counts on"
        " targets.",
    )
    headroom_percent: StrictInt = Field(
        default=10, ge=0, le=99, description="Percent of each of these resources that targets keep free."
    )
    device_thresholds: dict[StrictStr, Annotated[StrictInt, Field(ge=0, le=100)]] = Field(
        default={},
        description="Percent of a node's devices that may be in use, by DeviceClass, for it to be worth"
        " emptying.",
    )
    nodes: StrictInt = Field(default=1, ge=1, description="Nodes to empty in one cycle, at most.")
    min_saving_per_restart: StrictStr | None = Field(
        default=None,
        description='What emptying a node must save for each pod that restarts, such as "1 EUR/day": an '
        "amount, a currency, and hour, day or month (30 days). Left out, prices do not matter.",
    )
    young_seconds: StrictInt | None = Field(
        default=None,
        ge=0,
        description="Seconds after its creation from which a node may be emptied; left out, 600 with "
        "minSavingPerRestart, otherwise 0.",
    )
    filled_seconds: StrictInt | None = Field(
        default=None,
        ge=0,
        le=86_400,
        description="Seconds for which a node is not emptied to which the strategy has moved a pod; left "
        "out, a day, with minSavingPerRestart an hour: then that says which restarts are worth it.",
    )
    headroom: list[HeadroomArg] = Field(
        default=[], description="Further pods that must still fit once a node is emptied."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_thresholds(self.thresholds)
        if self.min_saving_per_restart is not None:
            LeastSaving.of(self.min_saving_per_restart)
        return self


class ConsolidateNodes(Strategy):
    """Empty under-used nodes, either of all their pods or of none."""

    name: ClassVar = "ConsolidateNodes"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = ConsolidateNodesArgs
    planners: ClassVar = frozenset({Planner.PROVEN})
    empties_nodes: ClassVar = True

    def __init__(self, args: ConsolidateNodesArgs) -> None:
        self.args = args
        self._usage = RequestedUsage(args.thresholds)
        asked = args.min_saving_per_restart
        self._saving = None if asked is None else LeastSaving.of(asked)
        self._young_s = YOUNG_S if args.young_seconds is None and asked else args.young_seconds or 0
        self._filled_s = FILLED_WEIGHED_S if asked else FILLED_S
        if args.filled_seconds is not None:
            self._filled_s = args.filled_seconds

    def candidates(self, context: StrategyContext) -> Candidates:
        """One bundle for each node that can be emptied."""
        found = self._usage.nodes(context)
        in_use = {
            each.name
            for each in found
            if not is_closed(each.node) and any(map(may_leave, context.placed(each.name)))
        }
        targets = set(filter(context.prospects.is_target, in_use))
        uses = self._device_uses(context)
        sources = [each for each in found if each.name in in_use and self._is_source(each, uses, context)]
        sources.sort(
            key=lambda each: (
                -self._saved(each.node, context),
                max(*self._shares(each), *_percents(each.node, uses), 0.0),
                each.name,
            )
        )
        context.remarks += [
            f"node {each.name} is not emptied: {why}"
            for each in found
            if each.name in in_use
            and self._is_little_used(each, uses)
            and (why := self._kept(each.node, context))
        ][:REMARKS]
        emptied, filled = 0, set[str]()
        for source in sources:
            if emptied == self.args.nodes:
                return
            if source.name in filled:
                continue  # its pods were just moved there
            bundle = self._bundle(source, targets - {source.name}, context)
            if bundle is None:
                continue
            verdict = yield bundle
            if verdict is Verdict.ACCEPTED:
                emptied += 1
                targets.discard(source.name)
                filled |= {each.target for each in bundle.candidates}

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Under-used nodes with pods that could leave, 1 each."""
        uses = self._device_uses(context)
        return {
            Complaint(f"node {each.name} is little used and not empty"): 1.0
            for each in self._usage.some(nodes_near(context, near), context)
            if self._is_source(each, uses, context) and any(map(may_leave, context.placed(each.name)))
        }

    def to_be_emptied(self, context: StrategyContext, near: Vicinity) -> frozenset[str]:
        """Under-used nodes whose pods may all leave, if they have any."""
        found, uses = set(), self._device_uses(context)
        for each in self._usage.some(nodes_near(context, near), context):
            leaving = [pod for pod in context.placed(each.name) if may_leave(pod)]
            if leaving and self._is_source(each, uses, context) and all(map(context.may_go, leaving)):
                found.add(each.name)
        return frozenset(found)

    def _is_source(self, usage: NodeUsage, uses: DeviceUses, context: StrategyContext) -> bool:
        return self._is_little_used(usage, uses) and not self._kept(usage.node, context)

    def _is_little_used(self, usage: NodeUsage, uses: DeviceUses) -> bool:
        return all(
            usage.percent.get(name, 0.0) <= line for name, line in self.args.thresholds.items()
        ) and all(use.percent(usage.node) <= line for use, line in uses)

    def _kept(self, node: Node, context: StrategyContext) -> str:
        """Why the node is left unchanged, whatever its use; "" if it is not."""
        created = node.metadata.creation_timestamp
        if created is not None and (age := (context.now - created).total_seconds()) < self._young_s:
            return f"it is {max(age, 0):.0f} s old, less than youngSeconds {self._young_s}"
        ago = context.now.timestamp() - context.filled.get(node.name, NEVER)
        if ago < self._filled_s:
            return f"pods were moved to it {ago:.0f} s ago, less than filledSeconds {self._filled_s}"
        if (why := kept(node, context)) or self._saving is None:
            return why
        return self._saving.objection(node, self._restarts(node, context))

    def _restarts(self, node: Node, context: StrategyContext) -> int:
        return sum(map(may_leave, context.placed(node.name)))

    def _saved(self, node: Node, context: StrategyContext) -> float:
        """What emptying the node saves for each restart; 0 where prices do not matter."""
        return 0.0 if self._saving is None else self._saving.by_restart(node, self._restarts(node, context))

    def _device_uses(self, context: StrategyContext) -> DeviceUses:
        """The use of each class of devices that has a threshold, with the threshold."""
        book = context.objects.known_ledger(DeviceBook)
        if book is None:
            return ()
        return tuple((DeviceUse(book, name), line) for name, line in self.args.device_thresholds.items())

    def _shares(self, usage: NodeUsage) -> list[float]:
        return [usage.percent.get(name, 0.0) for name in self.args.thresholds]

    def _bundle(self, source: NodeUsage, targets: set[str], context: StrategyContext) -> Bundle | None:
        """All pods of the node with their places; None if one of them must stay."""
        reason = "its node is little used: " + ", ".join(
            f"{name} {usage:.0f}%"
            for name, usage in zip(self.args.thresholds, self._shares(source), strict=True)
        )
        pods = [pod for pod in context.pods(source.name) if may_leave(pod)]
        if not all(context.may_go(pod, reason) for pod in pods):
            return None
        # Largest pods first: small ones fit into the remaining room.
        pods.sort(key=lambda pod: (-self._bulk(pod, source.node, context), low_to_high(pod.pod), pod.key))
        placed = []
        rooms = [places(each, "", context) for each in self.args.headroom]
        with context.prospects.attempt() as attempt:
            for pod in pods:
                target = self._target(pod, targets, context)
                if not target:
                    message = (
                        f"no other node in use takes it and keeps {self.args.headroom_percent}% free,"
                        f" so node {source.name} is not emptied"
                    )
                    context.protected.append(Protected(pod, reason, Refusal("NoRoom", message)))
                    return None
                attempt.move(pod, target)
                placed.append(Candidate(pod, source.name, reason, target))
            for asked, before in zip(self.args.headroom, rooms, strict=True):
                if missing := shortage(asked, before, places(asked, source.name, context)):
                    message = f"{missing}, so node {source.name} is not emptied"
                    context.protected.append(Protected(pods[0], reason, Refusal("NoHeadroom", message)))
                    return None
        return Bundle(tuple(placed), one_by_one=True)

    def _bulk(self, pod: PodInfo, node: Node, context: StrategyContext) -> float:
        """The largest share of the node that the pod requests."""
        wanted, axes = self._wanted(pod, context)
        row = context.cluster.rows[node.name]
        room = context.cluster.allocatable[row, axes]
        return float((wanted / np.maximum(room, 1)).max(initial=0.0))

    def _target(self, pod: PodInfo, targets: set[str], context: StrategyContext) -> str:
        """The pod's target, "" without one."""
        outlook = context.prospects.outlook(pod)
        names = [] if outlook is None else [name for name in outlook.totals if name in targets]
        if outlook is None or not names:
            return ""
        cluster = context.cluster
        wanted, axes = self._wanted(pod, context)
        rows = np.array([cluster.rows[name] for name in names], dtype=np.intp)
        room = cluster.allocatable[rows[:, None], axes]
        filled = cluster.requested[rows[:, None], axes] + wanted
        # A node uses nothing of a resource that it lacks; the filters reject pods that request it.
        shares = np.where(room > 0, filled / np.maximum(room, 1), 0.0).max(axis=1, initial=0.0)
        most = 1 - self.args.headroom_percent / 100
        fitting = [
            at
            for at in range(len(names))
            if shares[at] <= most
            and self._load_with(pod, names[at], context) <= most
            and context.prospects.too_hot(names[at], pod) is None
        ]
        if not fitting:
            return ""
        uses = self._device_uses(context) if pod.pod.spec.resource_claims else ()

        def rank(at: int) -> tuple[float, float, int, int]:
            used = max(_percents(cluster.nodes[rows[at]], uses), default=0.0)
            return used, float(shares[at]), outlook.totals[names[at]], -at

        return names[max(fitting, key=rank)]

    def _load_with(self, pod: PodInfo, name: str, context: StrategyContext) -> float:
        """The largest share that a measured node would use with the pod, 0 if it is not measured."""
        book, row = context.load_book, context.cluster.rows[name]
        if book is None or book.state(row) is not LoadState.MEASURED:
            return 0.0
        load, own = book.load_on(row), book.of(pod)[:2]
        room = [
            int(context.cluster.allocatable[row, axis]) * unit
            for axis, unit in zip((CPU, MEMORY), PER_COLUMN_UNIT, strict=True)
        ]
        shares = [
            (load[at] + own[at]) / room[at]
            for at, resource in enumerate(("cpu", "memory"))
            if resource in self.args.thresholds and room[at] > 0
        ]
        return max(shares, default=0.0)

    def _wanted(self, pod: PodInfo, context: StrategyContext) -> tuple[IntArray, list[int]]:
        """The pod's requests of the resources with a threshold, and their axes."""
        cluster = context.cluster
        axes = [axis for name in self.args.thresholds if (axis := cluster.axis_of(name)) is not None]
        return cluster.requests_row(pod.requests)[axes], axes


def _percents(node: Node, uses: DeviceUses) -> list[float]:
    """Percent of a node's devices that are in use, by class."""
    return [use.percent(node) for use, _ in uses]
