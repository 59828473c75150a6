"""Finds the cheapest way to a better placement by a mixed-integer program, with a bound that proves it.

The program has two integers for each pair of template and node, whatever the number of pods
(:mod:`plimsoll_optimal.problem`).

Minimize ``price of all violations + price of a move * moves`` under

* room: arrivals on a node fit into its free room and the room of leaving pods;
* load, in a policy that moves pods by it: a node with arrivals uses no more than its line;
* topology spread: ``excess[c, d] >= count(d) - count(e) - maxSkew`` for domains d, e of constraint c;
* no regression: no constraint's excess is above today's.

HiGHS (Huangfu and Hall, 2018) solves it within a time limit. It begins with the given solution, and at any
time has a solution and a bound. By load, the search ends after a number of nodes of its tree, or within a
hundredth of the best, so that the elapsed time decides nothing. Requests are scaled to shares of the largest
node, so a solution may exceed a node's room by a millionth: the scheduler proves the moves, not this program.
"""

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from plimsoll.planning.moves import Objective
from plimsoll_optimal.load_terms import LEVELS, LoadTerms
from plimsoll_optimal.problem import (
    HEAT,
    NODE,
    VIOLATION,
    Ints,
    PlacementProblem,
    PodGroupCount,
    Solution,
    SpreadProblem,
    distances,
    mean_shares,
    used_shares,
    value_of,
)

if TYPE_CHECKING:
    import highspy  # an extra, imported when first used

#: Limit of search tree nodes when only time limits a search: the maximum of the solver's counter.
ALL_NODES = 2**31 - 1

#: Nodes of the search tree, and the gap as a share, at which a search by load ends.
MOST_NODES, CLOSE = 200, 0.01

#: No bound, in HiGHS' notation.
INFINITY = math.inf


def solve(problem: PlacementProblem, seconds: float, start: Solution | None = None) -> Solution:
    """The best solution found within the time; never worse than ``start`` or doing nothing."""
    nothing = Solution(
        np.zeros(len(problem.stocks), dtype=np.int64), np.zeros_like(problem.most), 0.0, -np.inf
    )
    candidates = [nothing] if start is None else [nothing, start]
    known = min(candidates, key=lambda each: value_of(problem, each.leaving, each.arriving))
    model = _Model(problem)
    leaving, arriving, bound, spent = model.run(seconds, known)
    value = value_of(problem, leaving, arriving)
    best = value_of(problem, known.leaving, known.arriving)
    if best <= value:
        leaving, arriving, value = known.leaving, known.arriving, best
    return Solution(leaving, arriving, value, min(bound, value), spent)


class _Model:
    """The program in HiGHS' form: columns with bounds and costs, rows of coefficients."""

    most_nodes: ClassVar = ALL_NODES

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        #: By resource, the largest node's allocatable; requests and free room are shares of it.
        self._scale = np.maximum(problem.allocatable.max(axis=0), 1e-9)
        self._requests = problem.requests / self._scale
        self._free = np.maximum(problem.allocatable - problem.used, 0.0) / self._scale
        self._costs: list[float] = []
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._starts: list[int] = [0]
        self._index: list[int] = []
        self._values: list[float] = []
        self._leaving = [
            self._column(each.count, 0.0 if each.waits else problem.move_price) for each in problem.stocks
        ]
        closed = {(each.template, each.node) for each in problem.stocks if each.unwanted}
        self._arriving = {
            (int(t), int(n)): self._column(float(problem.most[t, n]))
            for t, n in zip(*np.nonzero(problem.most), strict=True)
            if (int(t), int(n)) not in closed
        }
        self._changes = self._changed()
        self._balance()
        self._room()
        self._order()
        self._violations()
        if problem.loads is not None:
            self._loads(problem.loads)
        elif problem.objective is Objective.SMALLEST_SPREAD:
            self._distances()
        if problem.objective is Objective.FEWEST_NODES:
            self._freed()

    def _column(self, upper: float, cost: float = 0.0, *, integer: bool = True) -> int:
        self._upper.append(upper)
        self._costs.append(cost)
        self._integer.append(integer)
        return len(self._costs) - 1

    def _row(self, terms: dict[int, float], low: float, high: float) -> None:
        self._index += terms.keys()
        self._values += terms.values()
        self._starts.append(len(self._index))
        self._low.append(low)
        self._high.append(high)

    def _placed(self) -> list[tuple[int, PodGroupCount]]:
        """The columns of pods that leave a node."""
        pairs = zip(self._leaving, self.problem.stocks, strict=True)
        return [(column, stock) for column, stock in pairs if not stock.waits]

    def _balance(self) -> None:
        """As many pods of a template arrive as leave."""
        terms: list[dict[int, float]] = [{} for _ in self.problem.requests]
        for column, stock in zip(self._leaving, self.problem.stocks, strict=True):
            terms[stock.template][column] = 1.0
        for (template, _), column in self._arriving.items():
            terms[template][column] = -1.0
        for each in terms:
            self._row(each, 0.0, 0.0)

    def _by_node_and_resource(self) -> list[list[dict[int, float]]]:
        return [[{} for _ in self._scale] for _ in self.problem.used]

    def _changed(self) -> list[list[dict[int, float]]]:
        """By node and resource: the amount that each column adds."""
        scaled, found = self._requests, self._by_node_and_resource()
        for (template, node), column in self._arriving.items():
            for resource in np.flatnonzero(scaled[template]):
                found[node][resource][column] = float(scaled[template, resource])
        for column, stock in self._placed():
            for resource in np.flatnonzero(scaled[stock.template]):
                found[stock.node][resource][column] = -float(scaled[stock.template, resource])
        return found

    def _room(self) -> None:
        """Arrivals need room; a node that is too full already gets no fuller."""
        for node, by_resource in enumerate(self._changes):
            for resource, terms in enumerate(by_resource):
                if any(value > 0 for value in terms.values()):
                    self._row(terms, -INFINITY, float(self._free[node, resource]))

    def _order(self) -> None:  # noqa: C901, PLR0912 - one constraint after the other
        """In each step, pods that leave also arrive; they fit next to pods that no earlier step has moved."""
        problem, scaled = self.problem, self._requests
        templates = {column: template for (template, _), column in self._arriving.items()}
        templates |= dict(zip(self._leaving, (each.template for each in problem.stocks), strict=True))
        shares = {
            column: [
                (int(resource), float(scaled[each, resource])) for resource in np.flatnonzero(scaled[each])
            ]
            for column, each in templates.items()
        }
        parts: dict[int, dict[int, float]] = {column: {column: -1.0} for column in shares}
        taken = self._by_node_and_resource()
        for _ in range(problem.phases):
            step = {column: self._column(self._upper[column]) for column in shares}
            for column, part in step.items():
                parts[column][part] = 1.0
            terms: list[dict[int, float]] = [{} for _ in problem.requests]
            for (template, node), column in self._arriving.items():
                terms[template][step[column]] = -1.0
                for resource, share in shares[column]:
                    taken[node][resource][step[column]] = share
            for column, stock in zip(self._leaving, problem.stocks, strict=True):
                terms[stock.template][step[column]] = 1.0
            for each in terms:
                self._row(each, 0.0, 0.0)
            for node, by_resource in enumerate(taken):
                for resource, each in enumerate(by_resource):
                    if each:
                        self._row(dict(each), -INFINITY, float(self._free[node, resource]))
            for column, stock in self._placed():
                for resource, share in shares[column]:
                    taken[stock.node][resource][step[column]] = -share
        if problem.phases:
            for each in parts.values():
                self._row(each, 0.0, 0.0)

    def _violations(self) -> None:
        """Unwanted pods that stay, and the excess of domains."""
        problem = self.problem
        for column, stock in zip(self._leaving, problem.stocks, strict=True):
            if stock.unwanted:
                stays = self._column(float(stock.unwanted), VIOLATION * stock.weight, integer=False)
                self._row({stays: 1.0, column: 1.0}, float(stock.unwanted), INFINITY)
        for spread in problem.spreads:
            self._spread(spread)

    def _spread(self, spread: SpreadProblem) -> None:
        terms: list[dict[int, float]] = [{} for _ in spread.sizes]
        members = set(spread.templates)
        for (template, node), column in self._arriving.items():
            if template in members and spread.domain_of[node] >= 0:
                terms[spread.domain_of[node]][column] = 1.0
        for column, stock in self._placed():
            if stock.template in members and spread.domain_of[stock.node] >= 0:
                terms[spread.domain_of[stock.node]][column] = -1.0
        smallest = self._column(INFINITY, integer=False)
        excess = [self._column(INFINITY, VIOLATION * spread.weight, integer=False) for _ in spread.sizes]
        for size, each, over in zip(spread.sizes, terms, excess, strict=True):
            self._row({**each, smallest: -1.0}, -float(size), INFINITY)
            self._row({**each, smallest: -1.0, over: -1.0}, -INFINITY, float(spread.max_skew - size))
        self._row(dict.fromkeys(excess, 1.0), -INFINITY, float(spread.excess(spread.sizes)))

    def _distances(self) -> None:
        """Percentage points between each node's share and the mean, averaged over the resources."""
        problem = self.problem
        shares, mean = used_shares(problem, problem.used), mean_shares(problem)
        points = 100.0 / len(problem.evened)
        for node, by_resource in enumerate(self._changes):
            for resource in problem.evened:
                terms = by_resource[resource]
                if not terms:
                    continue
                share = float(self._scale[resource] / max(problem.allocatable[node, resource], 1e-9))
                change = {column: value * share * points for column, value in terms.items()}
                away = float(shares[node, resource] - mean[resource]) * points
                distance = self._column(INFINITY, 1.0, integer=False)
                self._row({**change, distance: -1.0}, -INFINITY, -away)
                self._row({**change, distance: 1.0}, -away, INFINITY)

    def _loads(self, loads: LoadTerms) -> None:
        """No arrivals on a node above its line; excess points and distances have a price."""
        problem = self.problem
        coming = {column: (template, node) for (template, node), column in self._arriving.items()}
        terms = self._points(loads)
        used, lines = (100.0 * each / np.maximum(loads.room, 1e-9) for each in (loads.used, loads.lines))
        hot, mean = loads.points(loads.hot), loads.mean
        for node, by_quantity in enumerate(terms):
            for quantity, each in enumerate(by_quantity):
                room = float(lines[node, quantity] - used[node, quantity])
                if math.isfinite(room) and any(column in coming for column in each):
                    self._row(each, -INFINITY, max(room, 0.0))
            for level in range(LEVELS):
                if math.isfinite(hot[node, level]):
                    over = self._column(INFINITY, HEAT, integer=False)
                    above = float(hot[node, level] - used[node, level])
                    self._row({**by_quantity[level], over: -1.0}, -INFINITY, above)
            if problem.objective is not Objective.SMALLEST_SPREAD or not loads.counts[node]:
                continue
            for level in loads.evened:
                share = 1.0 / len(loads.evened)
                away = float(used[node, level] - mean[level])
                distance = self._column(INFINITY, share, integer=False)
                self._row({**by_quantity[level], distance: -1.0}, -INFINITY, -away)
                self._row({**by_quantity[level], distance: 1.0}, -away, INFINITY)

    def _points(self, loads: LoadTerms) -> list[list[dict[int, float]]]:
        """By node and quantity: the points that each column adds."""
        room = np.maximum(loads.room, 1e-9)
        terms: list[list[dict[int, float]]] = [[{} for _ in range(2 * LEVELS)] for _ in loads.used]
        for (template, node), column in self._arriving.items():
            for quantity, points in enumerate((100.0 * loads.arriving[template] / room[node]).tolist()):
                terms[node][quantity][column] = points
        for at, (column, stock) in enumerate(zip(self._leaving, self.problem.stocks, strict=True)):
            if stock.waits:
                continue
            for quantity, points in enumerate((100.0 * loads.leaving[at] / room[stock.node]).tolist()):
                terms[stock.node][quantity][column] = -points
        return terms

    def _freed(self) -> None:
        """A node is occupied unless every pod that may leave has left and none arrives."""
        problem = self.problem
        terms: list[dict[int, float]] = [{} for _ in problem.used]
        pods = np.zeros(len(problem.used))
        most = np.zeros(len(problem.used))
        for column, stock in self._placed():
            terms[stock.node][column] = -1.0
            pods[stock.node] += stock.count
        for (template, node), column in self._arriving.items():
            terms[node][column] = 1.0
            most[node] += problem.most[template, node]
        for node in map(int, np.flatnonzero(~problem.staying & (pods + most > 0))):
            is_open = self._column(1.0, NODE)
            self._row(
                {**terms[node], is_open: -float(pods[node] + most[node])}, -INFINITY, -float(pods[node])
            )

    def run(self, seconds: float, start: Solution) -> tuple[Ints, Ints, float, float]:
        """Leaving pods, arrivals, the bound, and the seconds that the search took by its own clock."""
        import highspy  # noqa: PLC0415 - an extra, and slow to import

        solver = highspy.Highs()  # type: ignore[no-untyped-call]  # the library's constructor has no types
        options = {"output_flag": False, "time_limit": seconds, "mip_rel_gap": 0.0, "threads": 1}
        options["mip_max_nodes"] = self.most_nodes
        if self.problem.loads is not None:
            options |= {"mip_max_nodes": min(MOST_NODES, self.most_nodes), "mip_rel_gap": CLOSE}
        for name, value in options.items():
            solver.setOptionValue(name, value)
        solver.passModel(self._program())
        solver.setSolution(self._started(start))
        solver.run()
        columns = np.asarray(solver.getSolution().col_value, dtype=np.float64)
        constant = 0.0
        if self.problem.objective is Objective.FEWEST_NODES:
            constant = NODE * float(self.problem.staying.sum())
        if self.problem.objective is Objective.SMALLEST_SPREAD and self.problem.loads is None:
            constant = self._unmoved_distance()
        bound = float(solver.getInfo().mip_dual_bound) + constant
        if not len(columns):
            return start.leaving, start.arriving, bound, solver.getRunTime()
        arriving = np.zeros_like(self.problem.most)
        for (template, node), column in self._arriving.items():
            arriving[template, node] = round(columns[column])
        leaving = np.asarray([round(columns[column]) for column in self._leaving], dtype=np.int64)
        return leaving, arriving, bound, float(solver.getRunTime())

    def _unmoved_distance(self) -> float:
        """The part of the objective without columns: nodes and resources that nothing changes."""
        problem = self.problem
        distance = distances(problem, problem.used) * 100 / len(problem.evened)
        touched = [
            [bool(by_resource[resource]) for resource in problem.evened] for by_resource in self._changes
        ]
        return float(distance[~np.asarray(touched, dtype=np.bool_)].sum())

    def _program(self) -> "highspy.HighsLp":
        import highspy  # noqa: PLC0415 - likewise

        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self._costs), len(self._low)
        program.col_cost_ = np.asarray(self._costs)
        program.col_lower_ = np.zeros(len(self._costs))
        program.col_upper_ = np.asarray(self._upper)
        program.row_lower_, program.row_upper_ = np.asarray(self._low), np.asarray(self._high)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.asarray(self._starts)
        program.a_matrix_.index_ = np.asarray(self._index)
        program.a_matrix_.value_ = np.asarray(self._values)
        kinds = highspy.HighsVarType
        program.integrality_ = [kinds.kInteger if each else kinds.kContinuous for each in self._integer]
        return program

    def _started(self, start: Solution) -> "highspy.HighsSolution":
        """The known solution; HiGHS computes the dependent columns."""
        import highspy  # noqa: PLC0415 - likewise

        given = highspy.HighsSolution()
        values = np.full(len(self._costs), highspy.kHighsUndefined)
        for column, gone in zip(self._leaving, start.leaving, strict=True):
            values[column] = gone
        for (template, node), column in self._arriving.items():
            values[column] = start.arriving[template, node]
        given.col_value = list(values)
        return given
