"""The search for the least that makes a seed fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from promises.findings import Facts
from simulation.faults import FaultKind
from simulation.minimal_plan import Search, command, kind_of
from simulation.planted_bugs import PLANTED
from simulation.regressions import Regression
from simulation.run import Outcome, Plan, simulated

OBJECTS = ("node-1", "node-2", "serve", "app-1")
KINDS = {FaultKind.WATCH_LAG, FaultKind.LATENCY, FaultKind.POD_DELETED}


def made_of(plan: Plan) -> Outcome:
    """A run of twenty faults that fails by two of them together, on one object, within 20 s."""
    kinds = KINDS if plan.kinds is None else KINDS & set(plan.kinds)
    faults = set(range(20)) if plan.faults is None else set(plan.faults)
    objects = tuple(each for each in OBJECTS if each not in plan.left_out)
    fails = {3, 17} <= faults and FaultKind.WATCH_LAG in kinds and plan.faulty_s >= 20.0
    sentences = ["4.5 app-1 was lost on node-1"] if fails and "node-1" in objects else ["7.0 nothing runs"]
    return Outcome(
        seed=plan.seed,
        digest="",
        violations=sentences if "serve" not in objects or fails else [],
        faults=Counter(kinds),
        facts=Facts(),
        story=[],
        virtual_s=0.0,
        steps=0,
        cpu_s=0.0,
        objects=objects,
        drawn=20,
    )


def test_only_what_is_needed_is_left() -> None:
    """Kinds, time, objects and single faults; another violation than the first does not count."""
    smallest = Search(Plan(7), made_of).run()

    assert smallest.kinds == frozenset({FaultKind.WATCH_LAG})
    assert smallest.faulty_s == 30.0
    assert set(OBJECTS) - smallest.left_out == {"node-1"}
    assert smallest.faults == frozenset({3, 17})
    assert command(smallest) == (
        'make simulate SEED=7 ARGS="--only WATCH_LAG --without app-1,node-2,serve --faults 3,17 --faulty 30"'
    )


def test_a_search_ends_when_its_time_is_over() -> None:
    """Runs of a large world may take a minute each."""
    runs: list[Plan] = []

    def simulate(plan: Plan) -> Outcome:
        runs.append(plan)
        return replace(made_of(plan), cpu_s=100.0)

    search = Search(Plan(7), simulate, cpu_s=300.0)
    search.run()

    assert search.is_over
    assert len(runs) == 1 + 3  # the plan itself, and what was tried


def test_a_plan_that_does_not_fail_stays() -> None:
    """There is nothing to make smaller."""
    assert Search(Plan(7, faulty_s=10.0), made_of).run() == Plan(7, faulty_s=10.0, stops=True)


def test_violations_are_compared_without_names_and_numbers() -> None:
    """Of a smaller run they differ."""
    assert kind_of(
        "4.531 red.0 over-committed node-4 by app-3-hglhh-l7p5g: 4400 of 4000 milli cpu"
    ) == kind_of("39.2 blue.1 over-committed node-1 by app-1-xxxx-2: 1 of 2 milli cpu")
    assert kind_of("1.0 app-1 is lost") != kind_of("1.0 app-1 is late")


def test_a_planted_bug_is_found_by_less_than_the_whole_seed() -> None:
    """The command of the smallest plan runs what was found."""
    plan = Plan(5, features=(), mutate=PLANTED["takes_the_lease_early"], stops=True)

    smallest = Search(plan, runs=8).run()

    assert simulated(smallest).violations
    assert smallest.left_out
    assert smallest.faulty_s < plan.faulty_s


def test_a_regression_is_the_plan_that_it_was() -> None:
    """As :func:`simulation.minimal_plan.entry` writes it."""
    regression = Regression(7, "0123abc", "lost", kinds=["WATCH_LAG"], left_out=["node-1"], faults=[3])

    assert regression.plan == replace(
        Plan(7), kinds=frozenset({FaultKind.WATCH_LAG}), left_out=frozenset({"node-1"}), faults=frozenset({3})
    )
