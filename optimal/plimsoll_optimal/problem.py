"""Defines the placement problem in plain values: movable pods, constraints and the objective.

Pods of one template are interchangeable, so the problem has no single pods: ``leaving[s]`` pods of a stock
(the movable pods of one template on one node, or its pending pods) leave, ``arriving[t, n]`` pods of template
t arrive on node n, and for each template as many arrive as leave.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from plimsoll.framework.descheduling.complaints import Gravity
from plimsoll.planning.moves import Objective
from plimsoll_optimal.load_terms import LoadTerms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The price of one violation, in moves: any number of moves is cheaper than leaving it.
VIOLATION = 1000.0

#: How many violations one counts as.
WEIGHTS = {Gravity.BALANCE: 1.0, Gravity.PREFERENCE: 10.0, Gravity.RULE: 100.0}

#: The value of a freed node, in moves.
NODE = 20.0

#: The price of a percentage point of a node's use above a strategy's line by load, in moves.
HEAT = 20.0

#: In place of the index of a node.
NOWHERE = -1


class PodGroupCount(Struct, frozen=True):
    """The movable pods of one template on one node, or the pending ones, which have none.

    Attributes:
        unwanted: The number of them that strategies want to move; if above 0, none may arrive here.
        weight: How many violations each of these counts as.
    """

    template: int
    node: int
    count: int
    unwanted: int = 0
    weight: float = 1.0

    @property
    def waits(self) -> bool:
        """Whether its pods have no node yet; placing them is no move."""
        return self.node == NOWHERE


class SpreadProblem(Struct, frozen=True):
    """A topology spread constraint.

    Attributes:
        max_skew: The maximum by which a domain may exceed the smallest.
        sizes: Shape (D,): number of matching pods in each counted domain.
        domain_of: Shape (N,): each node's domain, -1 for none that counts.
        templates: Indices of the templates whose pods match.
        weight: How many violations a pod too many counts as.
    """

    max_skew: int
    sizes: Ints
    domain_of: Ints
    templates: tuple[int, ...]
    weight: float = 1.0

    def excess(self, sizes: Ints) -> int:
        """Pods above what the smallest domain allows, summed over all domains."""
        if not len(sizes):
            return 0
        return int(np.maximum(sizes - sizes.min() - self.max_skew, 0).sum())


class PlacementProblem(Struct, frozen=True):
    """A placement and its possible changes; T templates, N nodes, R resources.

    Attributes:
        requests: Shape (T, R): of one pod.
        used: Shape (N, R): present requests.
        allocatable: Shape (N, R).
        most: Shape (T, N): the maximum number of arriving pods of the template; 0 if the node is infeasible.
        stocks: The pods that may leave.
        spreads: Constraints to keep or repair.
        move_price: The price of a move, in units of the objective (a violation is worth 1,000 moves, a freed
            node 20, a percentage point of a node's distance from the mean one).
        staying: Shape (N,): whether pods stay on the node that keep it from being freed.
        evened: Indices of the resources whose use SmallestSpread evens out.
        loads: Use in addition to requests, in a policy that moves pods by load: then SmallestSpread evens use
            out.
        phases: Number of steps, each of simultaneous moves, in which the result must be reachable: arrivals
            of a step fit next to all pods that no earlier step has moved. 0 requires no order.
    """

    requests: Floats
    used: Floats
    allocatable: Floats
    most: Ints
    stocks: tuple[PodGroupCount, ...]
    staying: NDArray[np.bool_]
    evened: tuple[int, ...] = (0,)
    spreads: tuple[SpreadProblem, ...] = ()
    objective: Objective = Objective.FEWEST_VIOLATIONS
    move_price: float = 1.0
    phases: int = 0
    loads: LoadTerms | None = None

    def level_after(self, leaving: Ints, arriving: Ints) -> Floats:
        """Shape (N, 2): the nodes' use after the moves; zeros without loads."""
        if self.loads is None:
            return np.zeros((len(self.used), 2))
        nodes = [(at, stock.node) for at, stock in enumerate(self.stocks) if not stock.waits]
        return self.loads.after(leaving, arriving, nodes)


class Solution(Struct, frozen=True):
    """The leaving pods and the arrivals.

    Attributes:
        leaving: Shape (S,): pods of each stock.
        arriving: Shape (T, N).
        value: The objective, including the price of moves.
        bound: No solution is better than this.
    """

    leaving: Ints
    arriving: Ints
    value: float
    bound: float
    seconds: float = 0.0

    @property
    def moves(self) -> int:
        """Number of leaving pods."""
        return int(self.leaving.sum())

    @property
    def gap(self) -> float:
        """The maximum distance of the value from the best, as a share of it; 0 is proven optimal."""
        return max(self.value - self.bound, 0.0) / max(abs(self.value), 1e-9)


def value_of(
    problem: PlacementProblem,
    leaving: Ints,
    arriving: Ints,
    unwanted: float | None = None,
    level: Floats | None = None,
) -> float:
    """The objective of a solution, computed without the solver.

    ``unwanted`` is the weight of the pods that strategies want to move afterwards; by default, of the
    present ones that stay. ``level`` is the nodes' use afterwards, shape (N, 2); by default, from the
    problem's loads.
    """
    used = problem.used + arriving.T @ problem.requests
    wrong, moves = 0.0, 0
    for stock, gone in zip(problem.stocks, leaving.tolist(), strict=True):
        wrong += stock.weight * max(stock.unwanted - gone, 0)
        if not stock.waits:
            used[stock.node] -= gone * problem.requests[stock.template]
            moves += gone
    wrong = wrong if unwanted is None else unwanted
    for spread in problem.spreads:
        wrong += spread.weight * spread.excess(_sizes_after(problem, spread, leaving, arriving))
    value = VIOLATION * wrong + problem.move_price * moves
    if problem.loads is not None:
        level = problem.level_after(leaving, arriving) if level is None else level
        value += HEAT * problem.loads.excess(level)
        if problem.objective is Objective.SMALLEST_SPREAD:
            return value + problem.loads.distance(level)
    match problem.objective:
        case Objective.SMALLEST_SPREAD:
            value += float(distances(problem, used).mean(axis=1).sum()) * 100
        case Objective.FEWEST_NODES:
            value += NODE * float(occupied(problem, leaving, arriving).sum())
        case _:
            pass
    return value


def _sizes_after(problem: PlacementProblem, spread: SpreadProblem, leaving: Ints, arriving: Ints) -> Ints:
    sizes = spread.sizes.copy()
    counted = spread.domain_of >= 0
    for template in spread.templates:
        np.add.at(sizes, spread.domain_of[counted], arriving[template, counted])
    for stock, gone in zip(problem.stocks, leaving, strict=True):
        if stock.template in spread.templates and not stock.waits and spread.domain_of[stock.node] >= 0:
            sizes[spread.domain_of[stock.node]] -= gone
    return sizes


def used_shares(problem: PlacementProblem, used: Floats) -> Floats:
    """Shape (N, R): the share of each node that is used."""
    return used / np.maximum(problem.allocatable, 1e-9)


def mean_shares(problem: PlacementProblem) -> Floats:
    """Shape (R,): the share that all nodes together use; moves do not change it."""
    total: Floats = problem.used.sum(axis=0) / np.maximum(problem.allocatable.sum(axis=0), 1e-9)
    return total


def distances(problem: PlacementProblem, used: Floats) -> Floats:
    """Shape (N, E): each node's distance from the mean, in each evened resource."""
    away: Floats = np.abs(used_shares(problem, used) - mean_shares(problem))[:, list(problem.evened)]
    return away


def occupied(problem: PlacementProblem, leaving: Ints, arriving: Ints) -> NDArray[np.bool_]:
    """Shape (N,): whether the node has pods that could leave, or that stay permanently."""
    pods = arriving.sum(axis=0)
    for stock, gone in zip(problem.stocks, leaving, strict=True):
        if not stock.waits:
            pods[stock.node] += stock.count - gone
    return np.asarray((pods > 0) | problem.staying, dtype=np.bool_)
