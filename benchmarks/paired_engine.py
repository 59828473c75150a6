"""Compares the engine with and without NodeLoad: the same pods, by turns, fifty at a time.

Turns in one process, each measured by its thread's processor time: what else the machine does slows both
alike, and their ratio stays.
"""

import gc
import statistics
import time
from typing import Annotated

from engine import BY_LOAD, apply, pods_of, prepared, read_nodes, scheduler
from plimsoll.commands.parameters import Option, command_of
from plimsoll.engine.attempt import schedule

TURN = 50


class Side:
    """A cluster with its engine, and the pods to place there."""

    def __init__(self, family: str, nodes: int, templates: int | None, pods: int) -> None:
        self.cluster, workload = prepared(family, nodes)
        is_by_load = family.endswith(BY_LOAD)
        if is_by_load:
            read_nodes(self.cluster)
        self.engine = scheduler(self.cluster, by_load=is_by_load)
        self.pods = list(pods_of(workload["measured"], "measured", pods, templates))
        for pod in pods_of(workload["measured"], "warm-up", 10, 10):
            apply(self.cluster, schedule(self.engine, self.cluster.templates.info(pod)), self.engine)

    def turn(self, start: int) -> float:
        """Place fifty pods; microseconds of processor time a pod."""
        began = time.thread_time_ns()
        for pod in self.pods[start : start + TURN]:
            apply(self.cluster, schedule(self.engine, self.cluster.templates.info(pod)), self.engine)
        return (time.thread_time_ns() - began) / TURN / 1000


def main(
    family: Annotated[str, Option(help="A workload of workloads.yaml.")] = "basic",
    nodes: Annotated[int, Option(help="Nodes.")] = 5000,
    templates: Annotated[int, Option(help="Templates; 0: each pod has one of its own.")] = 10,
    pods: Annotated[int, Option(help="Pods for each side.")] = 8000,
) -> None:
    """Print both sides' costs and the median of the turns' ratios."""
    sides = [Side(each, nodes, templates or None, pods) for each in (family, family + BY_LOAD)]
    gc.collect()
    gc.freeze()
    costs: list[tuple[float, float]] = []
    for number, start in enumerate(range(0, pods, TURN)):
        first = number % 2
        found = {which: sides[which].turn(start) for which in (first, 1 - first)}
        costs.append((found[0], found[1]))
    ratio = statistics.median(other / one for one, other in costs)
    for name, figures in zip(("without", "with"), zip(*costs, strict=True), strict=True):
        best, middle = statistics.quantiles(figures, n=10)[0], statistics.median(figures)
        print(f"{name:8} {best:6.1f} us a pod in the best tenth, median {middle:.1f}")
    print(f"ratio    {ratio:6.3f} (median of {len(costs)} pairs)")


if __name__ == "__main__":
    command_of(main)()
