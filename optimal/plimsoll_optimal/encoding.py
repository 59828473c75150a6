"""Encodes a cluster as a :mod:`plimsoll_optimal.problem`, and decodes solutions into moves.

Resources, devices and topology spread are arithmetic in the program. Every other filter runs once per
template, on a copy of the cluster without the movable pods, so that these block nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.framework import PodInfo, PodTemplate, Snapshot
from plimsoll.framework.descheduling.strategy import MendsSpread
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.names import PodUid
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import Move, Objective, RebalancingConfig, replacement_of
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost
from plimsoll.toolkit.descheduling.spread_populations import DomainSizes, sizes_of
from plimsoll_optimal.device_terms import device_terms, shares_claim, without_served
from plimsoll_optimal.load_encoding import LoadEncoding
from plimsoll_optimal.load_terms import LoadTerms
from plimsoll_optimal.move_requests import EVENED, MoveRequest, default_wish, may_be_sent
from plimsoll_optimal.problem import (
    NOWHERE,
    WEIGHTS,
    Ints,
    PlacementProblem,
    PodGroupCount,
    Solution,
    SpreadProblem,
)

#: Pairs of templates and nodes above which only the emptiest nodes are targets.
PAIRS = 100_000


class ProblemEncoding(Struct):
    """The meaning of the program's indices.

    Attributes:
        pods: The movable pods of each stock: those that a strategy wants to move first, then the cheapest.
        default_wish: For pods that no strategy wants to move and that move for the objective.
        loads: The load of nodes, in a policy that moves pods by load.
        heated: By uid, why pods should leave nodes that are over-used by load; any of these pods will do.
    """

    problem: PlacementProblem
    nodes: tuple[str, ...]
    templates: tuple[PodTemplate, ...]
    pods: tuple[tuple[PodInfo, ...], ...]
    default_wish: MoveRequest
    _node: Mapping[str, int]
    _source: Mapping[str, str]
    _stock: Mapping[tuple[int, int], int]
    loads: LoadEncoding | None = None
    heated: Mapping[PodUid, MoveRequest] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rebalancing: RebalancingConfig,
        plan: PlanBuilder,
        wishes: Mapping[PodUid, MoveRequest],
        seed: Sequence[Move],
        left_alone: Container[str] = (),
        loads: LoadEncoding | None = None,
    ) -> Self:
        """Encode a cluster; from nodes that are left alone, only pods that a strategy wants to move leave."""
        spreads = _spreads(rebalancing, plan)
        concerned = None
        if rebalancing.goal.objective is Objective.FEWEST_VIOLATIONS:
            pods = plan.context.cluster.pods
            concerned = {move.pod.template for move in seed if move.target}
            concerned |= {pods[uid].template for uid in wishes if uid in pods}
            concerned |= {each for spread in spreads if spread.excess for each in spread.templates}
        seeded = {move.pod.uid for move in seed}
        by_load = loads is not None and rebalancing.goal.objective is not Objective.FEWEST_NODES
        heated = loads.wishes() if loads is not None else {}
        sources = loads.sources() if loads is not None else frozenset()

        def may_go_by_load(pod: PodInfo, node: str) -> bool:
            assert loads is not None
            if shares_claim(pod, plan.context.cluster):
                return False
            name = heated[pod.uid].strategy if pod.uid in heated else rebalancing.goal.objective.value
            return (
                node in sources
                and node not in left_alone
                and (concerned is None or pod.uid in heated)
                and plan.load.of_node(name, node) is None
                and loads.is_worth(pod, node)
                and plan.load.of_source(name, pod, node) is None
                and may_be_sent(plan, pod, node, name)
            )

        def may_go(pod: PodInfo, node: str) -> bool:
            if by_load and pod.uid not in seeded and pod.uid not in wishes:
                is_concerned = concerned is not None and pod.template in concerned
                return may_go_by_load(pod, node) or (is_concerned and may_be_sent(plan, pod, node, ""))
            if pod.uid not in seeded and shares_claim(pod, plan.context.cluster):
                return False
            if node in left_alone and pod.uid not in seeded and pod.uid not in wishes:
                return False
            return (concerned is None or pod.template in concerned) and (
                pod.uid in seeded or may_be_sent(plan, pod, node, _strategy(wishes.get(pod.uid)))
            )

        nodes = tuple(plan.context.nodes)
        setting = cls._of(rebalancing, plan, wishes, nodes, may_go, spreads=spreads, loads=loads)
        setting.heated = heated
        return setting

    @classmethod
    def around(
        cls,
        rebalancing: RebalancingConfig,
        plan: PlanBuilder,
        nodes: Sequence[str],
        waiting: Sequence[PodInfo],
    ) -> Self:
        """Encode some nodes and pods that wait for room there; no pod moves for one of lower priority.

        Only requests are encoded here: the proof checks topology constraints.
        """
        highest = min(pod.priority for pod in waiting)

        def may_go(pod: PodInfo, node: str) -> bool:
            return (
                pod.priority <= highest
                and pod.pod.node_name == node
                and not shares_claim(pod, plan.context.cluster)
                and may_be_sent(plan, pod, node, "")
            )

        goal = replace(rebalancing.goal, objective=Objective.FEWEST_VIOLATIONS)
        return cls._of(replace(rebalancing, goal=goal), plan, {}, tuple(nodes), may_go, waiting=waiting)

    @classmethod
    def _of(
        cls,
        rebalancing: RebalancingConfig,
        plan: PlanBuilder,
        wishes: Mapping[PodUid, MoveRequest],
        nodes: tuple[str, ...],
        may_go: Callable[[PodInfo, str], bool],
        *,
        spreads: Sequence[DomainSizes] = (),
        waiting: Iterable[PodInfo] = (),
        loads: LoadEncoding | None = None,
    ) -> Self:
        cluster = plan.context.cluster
        index = {name: at for at, name in enumerate(nodes)}
        stocks: dict[tuple[PodTemplate, str], list[PodInfo]] = defaultdict(list)
        staying = np.zeros(len(nodes), dtype=np.bool_)
        for name in nodes:
            for pod in plan.context.pods(name):
                if may_go(pod, name):
                    stocks[pod.template, name].append(pod)
                elif not _is_daemon(pod) and not pod.is_terminating:
                    staying[index[name]] = True
        for pod in waiting:
            stocks[pod.template, ""].append(pod)
        templates = tuple(dict.fromkeys(template for template, _ in stocks))
        number = {template: at for at, template in enumerate(templates)}
        listed = []
        for (template, name), pods in stocks.items():
            pods.sort(key=lambda pod: (pod.uid not in wishes, eviction_cost(pod), pod.key))
            unwanted = sum(pod.uid in wishes for pod in pods) if name else len(pods)
            weight = max((wishes[pod.uid].weight for pod in pods if pod.uid in wishes), default=1.0)
            stock = PodGroupCount(number[template], index.get(name, NOWHERE), len(pods), unwanted, weight)
            listed.append((stock, tuple(pods)))
        amounts = [cluster.requests_row(each.requests) for each in templates]
        requests = np.zeros((len(templates), len(cluster.resources)))
        for at, row in enumerate(amounts):
            requests[at, : len(row)] = row
        snapshot = Snapshot(cluster).at(np.asarray([cluster.rows[name] for name in nodes], dtype=np.intp))
        used, allocatable = (each.astype(np.float64) for each in (snapshot.requested, snapshot.allocatable))
        empty = _without_movable(cluster, listed)
        most = _most(
            rebalancing, cluster, empty, listed, (templates, nodes), wishes, _targets(rebalancing, loads)
        )
        devices = device_terms(listed, nodes, len(templates), cluster, empty)
        if devices is not None:
            columns = {name: at for at, name in enumerate(cluster.resources)}
            movable = sum(len(each) for _, each in listed)
            without_served(devices, columns, movable, requests, used, allocatable)
            requests = np.hstack((requests, devices.requests))
            used = np.hstack((used, devices.used))
            allocatable = np.hstack((allocatable, devices.allocatable))
        problem = PlacementProblem(
            requests=requests,
            used=used,
            allocatable=allocatable,
            most=most,
            stocks=tuple(stock for stock, _ in listed),
            spreads=tuple(_spread_problem(spread, nodes, number) for spread in spreads),
            objective=rebalancing.goal.objective,
            move_price=rebalancing.goal.move_price,
            staying=staying,
            evened=EVENED,
            loads=None if loads is None else _load_terms(loads, listed, len(templates)),
        )
        return cls(
            problem=problem,
            nodes=nodes,
            templates=templates,
            pods=tuple(pods for _, pods in listed),
            default_wish=default_wish(rebalancing),
            _node=index,
            _source={pod.uid: nodes[stock.node] for stock, pods in listed for pod in pods if not stock.waits},
            _stock={(stock.template, stock.node): at for at, (stock, _) in enumerate(listed)},
            loads=loads,
        )

    @property
    def nothing(self) -> tuple[Ints, Ints]:
        """The solution without moves."""
        return np.zeros(len(self.problem.stocks), dtype=np.int64), np.zeros_like(self.problem.most)

    def source_of(self, pod: PodInfo) -> str:
        """The node of a movable pod, "" for a pending one."""
        return self._source.get(pod.uid, "")

    def solution_of(self, moves: Iterable[Move]) -> tuple[Ints, Ints]:
        """The solution that consists of these moves."""
        leaving, arriving = self.nothing
        number = {template: at for at, template in enumerate(self.templates)}
        for move in moves:
            template = number.get(move.pod.template)
            if template is None or not move.target or move.target not in self._node:
                continue
            stock = self._stock.get((template, self._node[move.source]))
            if stock is None:
                continue  # it moves together with a pod whose claim it shares
            leaving[stock] += 1
            arriving[template, self._node[move.target]] += 1
        return leaving, arriving

    def unfolded(
        self, found: Solution
    ) -> tuple[dict[PodTemplate, list[PodInfo]], dict[PodTemplate, Counter[str]]]:
        """The leaving pods, and the nodes of their replacements, by template."""
        leaving: dict[PodTemplate, list[PodInfo]] = {template: [] for template in self.templates}
        for pods, stock, gone in zip(self.pods, self.problem.stocks, found.leaving, strict=True):
            leaving[self.templates[stock.template]] += pods[: int(gone)]
        arrivals: dict[PodTemplate, Counter[str]] = {template: Counter() for template in self.templates}
        for template, node in zip(*np.nonzero(found.arriving), strict=True):
            arrivals[self.templates[template]][self.nodes[node]] = int(found.arriving[template, node])
        return leaving, arrivals

    def forbid(
        self, problem: PlacementProblem, impossible: Mapping[tuple[PodTemplate, str], int], found: Solution
    ) -> PlacementProblem:
        """The same program with fewer arrivals than a solution had, where some of them were useless."""
        most = problem.most.copy()
        number = {template: at for at, template in enumerate(self.templates)}
        for (template, name), surplus in impossible.items():
            at = number[template], self._node[name]
            most[at] = max(int(found.arriving[at]) - surplus, 0)
        return replace(problem, most=most)


def _targets(rebalancing: RebalancingConfig, loads: LoadEncoding | None) -> frozenset[str] | None:
    """The targets for pods that no strategy wants to move; None for all nodes."""
    if loads is None or rebalancing.goal.objective is Objective.FEWEST_NODES:
        return None
    return loads.targets()


def _load_terms(
    loads: LoadEncoding, listed: Sequence[tuple[PodGroupCount, tuple[PodInfo, ...]]], templates: int
) -> LoadTerms:
    arriving: list[list[PodInfo]] = [[] for _ in range(templates)]
    for stock, pods in listed:
        arriving[stock.template] += pods
    return loads.terms(arriving, [pods for _, pods in listed])


def _spreads(rebalancing: RebalancingConfig, plan: PlanBuilder) -> list[DomainSizes]:
    """The topology constraints that some strategy repairs."""
    mending = [each for each in rebalancing.strategies if isinstance(each, MendsSpread)]
    wanted = tuple(dict.fromkeys(kind for each in mending for kind in each.mends_spread))
    return [
        sizes
        for namespace in plan.context.namespaces()
        if wanted
        for sizes in sizes_of(namespace, wanted, lambda _: True, plan.context)
    ]


def _spread_problem(
    spread: DomainSizes, nodes: Sequence[str], number: Mapping[PodTemplate, int]
) -> SpreadProblem:
    """A constraint with indices in place of names."""
    domains = {value: at for at, value in enumerate(spread.sizes)}
    domain_of = [domains[spread.domain_of[name]] if name in spread.domain_of else -1 for name in nodes]
    return SpreadProblem(
        max_skew=spread.constraint.max_skew,
        sizes=np.asarray(list(spread.sizes.values()), dtype=np.int64),
        domain_of=np.asarray(domain_of, dtype=np.int64),
        templates=tuple(number[each] for each in spread.templates if each in number),
        weight=WEIGHTS[spread.constraint.gravity],
    )


def _most(
    rebalancing: RebalancingConfig,
    cluster: Cluster,
    empty: Cluster,
    listed: Sequence[tuple[PodGroupCount, tuple[PodInfo, ...]]],
    names: tuple[Sequence[PodTemplate], Sequence[str]],
    wishes: Mapping[PodUid, MoveRequest],
    targets: frozenset[str] | None,
) -> Ints:
    """Shape (T, N): maximum arrivals of each template on each node, by the filters that do not count.

    Pods that no strategy wants to move go to ``targets`` only, unless that is None.
    """
    templates, nodes = names
    movable: Counter[int] = Counter()
    samples: dict[int, PodInfo] = {}
    evenly: set[int] = set()
    unwanted = {stock.template for stock, _ in listed if stock.unwanted}
    for stock, pods in listed:
        movable[stock.template] += len(pods)
        samples.setdefault(stock.template, pods[0])
        if any(pod.uid in wishes and wishes[pod.uid].evenly for pod in pods):
            evenly.add(stock.template)
    schedulers = ForkSchedulers(rebalancing.profiles, empty)
    most = np.zeros((len(templates), len(nodes)), dtype=np.int64)
    shown = _emptiest(cluster, nodes, max(PAIRS // max(len(templates), 1), 1))
    for number, sample in samples.items():
        profile = rebalancing.profiles[sample.pod.spec.scheduler_name]
        verdict = schedulers.of(profile).evaluate(replacement_of(sample, empty))
        if verdict.pre_filter.is_rejected:
            continue
        counting = profile.capabilities.counting
        allowed = set(verdict.feasible) | {
            node for node, status in verdict.statuses.items() if status.plugin in counting
        }
        if targets is not None and number not in unwanted:
            allowed &= targets
        for at in shown:
            if nodes[at] in allowed and rebalancing.is_target(cluster.nodes[cluster.rows[nodes[at]]]):
                most[number, at] = movable[number]
        if number in evenly:
            standing = Counter(cluster.nodes[row].name for row in _rows_of(cluster, templates[number]))
            share = -(-sum(standing.values()) // max(int((most[number] > 0).sum()), 1))
            for at in np.flatnonzero(most[number]).tolist():
                most[number, at] = min(most[number, at], max(share - standing[nodes[at]], 0))
    return most


def _without_movable(
    cluster: Cluster, listed: Sequence[tuple[PodGroupCount, tuple[PodInfo, ...]]]
) -> Cluster:
    """A fork without the movable pods."""
    empty = cluster.fork()
    for stock, pods in listed:
        for pod in pods if not stock.waits else ():
            empty.displace(pod.uid)
    return empty


def _rows_of(cluster: Cluster, template: PodTemplate) -> Iterable[int]:
    return (row for pod, row in cluster.placed() if pod.template is template)


def _emptiest(cluster: Cluster, nodes: Sequence[str], count: int) -> Sequence[int]:
    """Indices of the ``count`` nodes with the most room in cpu and memory; all if there are no more."""
    if count >= len(nodes):
        return range(len(nodes))
    rows = np.asarray([cluster.rows[name] for name in nodes], dtype=np.intp)
    snapshot = Snapshot(cluster).at(rows)
    shares = snapshot.requested[:, list(EVENED)] / np.maximum(snapshot.allocatable[:, list(EVENED)], 1)
    order: Sequence[int] = np.argsort(shares.max(axis=1), kind="stable")[:count].tolist()
    return order


def _strategy(wish: MoveRequest | None) -> str:
    return wish.strategy if wish is not None else ""


def _is_daemon(pod: PodInfo) -> bool:
    return pod.pod.metadata.has_owner_of("DaemonSet")
