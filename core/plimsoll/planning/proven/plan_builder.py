"""Holds a plan while it is made: a fork with all moves made, and the rest of limits and budgets.

Nothing is decided here. :mod:`plimsoll.planning.proven.checks` and :mod:`plimsoll.planning.proven.proof` read
a plan, :mod:`plimsoll.planning.proven.verdicts` changes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.fork_devices import follow_devices
from plimsoll.framework.descheduling.complaints import Complaining
from plimsoll.framework.descheduling.context import StrategyContext, considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.pod_indexes import (
    MemberCounts,
    PodsByOwner,
    PodsByTemplate,
    ReadyCounts,
    UnplacedPods,
)
from plimsoll.framework.descheduling.strategy import (
    AsksForGain,
    MendsSpread,
    ServesPending,
    Strategy,
    StrategyKind,
    empties_nodes,
    is_ordered,
    nodes_to_empty,
    wants_even_spread,
    wants_restart,
)
from plimsoll.model.columns.admitted_shapes import AdmittedShapes
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.gang_members import GangMembers
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.planning.aftermath import shifted
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.complaint_comparison import ComplaintComparison, ComplaintWatcher
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.limits import NO_CEILING, Limits, Tally
from plimsoll.planning.load.load_guards import LoadGuards, scores_by_load
from plimsoll.planning.load.load_lines import LoadLines
from plimsoll.planning.moves import (
    TO_BE_EMPTIED,
    Move,
    PlanningContext,
    RebalancingConfig,
    Refused,
    replacement_of,
    replacement_uid,
)
from plimsoll.planning.populations import Populations
from plimsoll.planning.proven.prospects import ForkProspects
from plimsoll.planning.proven.template_proofs import TemplateProofs
from plimsoll.planning.surges import Surging

#: For plans that only search for what would be possible.
UNLIMITED = Limits(per_workload=NO_CEILING)

#: Pod indexes that strategies and evictors of planner Proven read; none of them depends on rows.
KEPT: tuple[type[PodIndex], ...] = (
    AdmittedShapes,
    MemberCounts,
    ReadyCounts,
    PodsByOwner,
    PodsByTemplate,
    GangMembers,
)


class StrategyTraits(Struct, frozen=True):
    """Names of a policy's strategies by what they move pods for.

    Attributes:
        asking_gain: Strategies that set the least gain of a move themselves.
        restarting: Those that want a fresh pod: its own node is as good as another.
        serving_pending: Those that make room for pending pods.
        balancing: Those that run in the Balance phase.
        by_use: Those that move pods because of the use of nodes; pods of others leave a place that is wrong.
        ordered: Those whose moves a person has ordered.
        emptying: Those that move all pods of a node away.
    """

    asking_gain: Mapping[str, AsksForGain]
    restarting: frozenset[str]
    serving_pending: frozenset[str]
    balancing: frozenset[str]
    by_use: frozenset[str]
    ordered: frozenset[str]
    emptying: frozenset[str]

    @property
    def saving(self) -> frozenset[str]:
        """Those that empty nodes by themselves, so that these can go."""
        return self.emptying - self.ordered

    @classmethod
    def of(cls, strategies: Sequence[Strategy]) -> Self:
        """The traits of these strategies."""
        serving = frozenset(each.name for each in strategies if isinstance(each, ServesPending))
        balancing = frozenset(each.name for each in strategies if each.kind is StrategyKind.BALANCE)
        spreading = {
            each.name for each in strategies if wants_even_spread(each) or isinstance(each, MendsSpread)
        }
        return cls(
            {each.name: each for each in strategies if isinstance(each, AsksForGain)},
            frozenset(each.name for each in strategies if wants_restart(each)),
            serving,
            balancing,
            balancing - serving - spreading,
            frozenset(each.name for each in strategies if is_ordered(each)),
            frozenset(each.name for each in strategies if empties_nodes(each)),
        )


class PlanBuilder:
    """One plan so far.

    Attributes:
        moves: The moves that were accepted, in order.
        refused: The candidates that were refused, in order.
        fork: The cluster with all moves made: replacements are on their targets.
        context: The strategies' view of the fork.
        moved: Uids of pods that no further proposal of this plan moves.
        tally: The evictions that count against the limits.
        ledger: The disruptions that PodDisruptionBudgets still allow.
        compares_complaints: Whether strategies judge the moves; planner Optimal has its own objective.
    """

    def __init__(
        self, rebalancing: RebalancingConfig, cluster: Cluster, planning_context: PlanningContext
    ) -> None:
        leaving = rebalancing.leaving | nodes_to_empty(rebalancing.strategies)
        rebalancing = replace(rebalancing, leaving=leaving)
        self.rebalancing = rebalancing
        self.planning_context = planning_context
        self.moves: list[Move] = []
        self.refused: list[Refused] = []
        self.moved: set[str] = set()
        cluster.count(KEPT)  # counted once and updated, not in every fork
        self.fork = cluster.fork()
        self.has_devices = self.fork.objects.known_ledger(DeviceBook) is not None
        if self.has_devices:
            follow_devices(self.fork)
        self.schedulers = ForkSchedulers(rebalancing.profiles, self.fork)
        prospects = ForkProspects(self.fork, rebalancing, self.schedulers)
        self.target_rows = prospects.targets
        self.template_proofs = TemplateProofs(self.fork, self.schedulers, self.target_rows)
        self.ledger = BudgetLedger(self.fork.objects.budgets.values())
        self.context = StrategyContext(
            cluster=self.fork,
            nodes=considered_nodes(self.fork, rebalancing.nodes),
            selector=rebalancing.nodes,
            now=planning_context.now,
            evictors=tuple(rebalancing.evictors),
            planner=Planner.PROVEN,
            unplaced=UnplacedPods(planning_context.unplaced),
            measurements=planning_context.measurements,
            gangs=planning_context.gangs,
            prospects=prospects,
        )
        shapes = self.fork.index(AdmittedShapes)
        for waiting in self.context.unplaced.pending():
            shapes.add(waiting, -1)  # admitted as well, though it has no place yet
        self.traits = StrategyTraits.of(rebalancing.strategies)
        others = (StrategyTraits.of(each.strategies) for each in planning_context.others.values())
        saving = self.traits.saving.union(*(each.saving for each in others))
        self.context.filled = planning_context.memory.filled(saving, self._born) if saving else {}
        self.compares_complaints = rebalancing.planner is Planner.PROVEN
        guided = (rebalancing.goal.objective.value,) if rebalancing.planner is Planner.OPTIMAL else ()
        self.load = LoadLines(
            self.context,
            rebalancing.strategies,
            LoadGuards(rebalancing, self.context, planning_context, guided),
            guided=guided,
            careful=self.traits.by_use,
            scores_load=partial(scores_by_load, rebalancing.profiles),
        )
        prospects.load_lines = self.load
        self.surging: Surging | None = None
        if rebalancing.surge:
            self.context.surges = self.surging = Surging(
                planning_context.deployments, self.fork.objects, frozenset(rebalancing.profiles)
            )
        populations = Populations(self.fork, rebalancing.evictors, rebalancing.nodes)
        self.tally = Tally(
            rebalancing.limits,
            populations,
            planning_context.in_flight,
            planning_context.recent,
            planning_context.hourly,
        )

    def _born(self, node: str) -> float:
        """When a node was created, in seconds since the epoch; 0 if that is not known."""
        row = self.fork.rows.get(node)
        return 0.0 if row is None else self.fork.nodes[row].metadata.created_s

    @cached_property
    def complaints(self) -> ComplaintComparison:
        """The comparison of complaints around moves; not needed to collect what strategies propose."""
        others = self._other_policies() if self.rebalancing.planner is Planner.PROVEN else []
        return ComplaintComparison(self.fork, self.context, self.rebalancing.strategies, others)

    def _other_policies(self) -> list[ComplaintWatcher]:
        """The strategies of other policies with their views of the fork."""
        found = []
        for policy, other in self.planning_context.others.items():
            view = replace(
                self.context,
                nodes=considered_nodes(self.fork, other.nodes),
                selector=other.nodes,
                protected=[],
                classes=[],
                remarks=[],
            )
            # One that reports no complaints would have to run here, which may take long.
            found += [
                ComplaintWatcher(each, replace(view, evictors=other.evictors_of(position), kept={}), policy)
                for position, each in enumerate(other.strategies)
                if isinstance(each, Complaining)
            ]
        return found

    def exclusion(self, node: str) -> str:
        """Why the node of this name may be no target, as a clause; "" if it may."""
        row = self.fork.rows[node]
        if self.target_rows.admitted[row]:
            return ""
        return self.rebalancing.exclusion(self.fork.nodes[row]) or TO_BE_EMPTIED

    def empties(self, nodes: Iterable[str]) -> None:
        """Admit no replacement on nodes that the plan empties."""
        for node in nodes:
            self.target_rows.close(node)
        self.forget()

    def forget(self) -> None:
        """Drop cached results; the fork has changed permanently."""
        self.template_proofs.forget()
        self.complaints.forget()

    def make(self, move: Move) -> None:
        """Make a move in the fork: remove the pod, place its replacement on the target."""
        self.forget()
        pod = move.pod
        self.moved.add(pod.uid)
        self.fork.displace(pod.uid)
        self.context.unplaced.discard(pod.uid)
        if move.target and move.target in self.fork.rows:
            self.fork.place(replacement_of(pod, self.fork, move.target), move.target)
            self.context.measurements = shifted(
                self.context.measurements, [(pod.key, move.source, move.target)]
            )

    def take_back(self, move: Move) -> None:
        """Undo a move in the fork."""
        self.forget()
        pod = move.pod
        self.moved.discard(pod.uid)
        if move.target:
            self.fork.displace(replacement_uid(pod))
            self.fork.place(pod, move.source)
            self.context.measurements = shifted(
                self.context.measurements, [(pod.key, move.target, move.source)]
            )
        else:
            self.context.unplaced.set(pod)

    def set_replacement(self, move: Move, status: PodStatus) -> None:
        """Set the replacement's state in the fork."""
        self.forget()
        if move.target:
            info = replacement_of(move.pod, self.fork, move.target)
            self.fork.displace(info.uid)
            named = info.pod.status.resource_claim_statuses
            status = msgspec.structs.replace(status, resource_claim_statuses=named)
            changed = msgspec.structs.replace(info.pod, status=status)
            self.fork.place(self.fork.templates.info(changed, info.stands_in_for), move.target)

    def collect_protected(self, strategy: str) -> None:
        """Collect the pods that evictors protected from a strategy's search."""
        for each in self.context.protected:
            self.refused.append(Refused(each.pod, strategy, each.wanted, each.refusal))
        self.context.protected.clear()
