"""Whole operators under faults: a handful of seeds; ``make simulate`` runs as many as one likes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from plimsoll.app.operator import Operator
from simulation.faults import FaultKind
from simulation.planted.surgery import replaced
from simulation.planted_bugs import FEATURED, NARROW, PLANTED, found, planned
from simulation.regressions import REGRESSIONS
from simulation.run import Outcome, Plan, Simulation, fresh_tasks, simulated
from simulation.wire.faults import WireFaultKind
from simulation.world.features import Feature

ROOT = Path(__file__).parents[2]
CHEAP = ("takes_the_lease_early", "binds_any_pod_of_the_name")

#: The seeds of this test, with kills, lost responses and relists among their faults; and virtual seconds of
#: peace after these.
SEEDS, PEACE_S = (2, 4), 200.0

#: The run of faults of bytes, as its program is written.
OF_BYTES = "6, faulty_s=40.0, peace_s=40.0, kinds=tuple(WireFaultKind), is_wired=True"


@cache
def outcome(seed: int) -> Outcome:
    """One seed with its faults."""
    return simulated(Plan(seed, peace_s=PEACE_S, tells=True))


@cache
def outcome_of_bytes() -> Outcome:
    """A seed over HTTP and in-memory sockets; ``make simulate ARGS=--wire`` runs as many as one likes."""
    return simulated(Plan(6, faulty_s=40.0, peace_s=40.0, kinds=tuple(WireFaultKind), is_wired=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken(seed: int) -> None:
    """Judged from the API server's side, at each commit and at the end."""
    found = outcome(seed)

    assert found.violations == [], f"make simulate SEED={seed}"
    assert found.facts.bindings > 0
    assert any("leading" in line for line in found.story)


def test_no_promise_is_broken_by_bytes() -> None:
    """The operator's HTTP clients and roadstead's HTTP server, two replicas, a cluster, the checker."""
    found = outcome_of_bytes()

    assert found.violations == [], f"make simulate SEED={found.seed} ARGS=--wire"
    assert found.facts.bindings > 0
    assert len(found.faults) > 8


@pytest.mark.parametrize("feature", [Feature.KINDS_OF_DEVICES, Feature.ONCE_MORE])
def test_no_promise_is_broken_in_worlds_that_few_seeds_have(feature: Feature) -> None:
    """With refused writes, and nodes that cannot be read for a while."""
    kinds = (FaultKind.WRITE_REFUSED, FaultKind.NODE_UNREADABLE)
    found = simulated(Plan(3, faulty_s=30.0, peace_s=120.0, features=(feature,), kinds=kinds))

    assert found.violations == []
    assert set(found.faults) == set(kinds)


def test_the_first_run_of_a_process_numbers_its_tasks_as_the_others() -> None:
    """Sets of tasks are in the order of their numbers, so other numbers would make another run."""
    fresh_tasks.cache_clear()
    simulation = Simulation(Plan(1))
    try:
        assert fresh_tasks.cache_info().currsize == 1, "the run that it makes would come between"
        assert hash(simulation.loop.create_future()) == 0
    finally:
        simulation.loop.close()


def test_plans_can_be_sent_to_other_processes() -> None:
    """``make simulate`` runs two at a time."""
    assert pickle.loads(pickle.dumps(Plan(1))) == Plan(1)


def test_a_seed_is_the_same_run_to_the_byte_in_another_process_with_another_hash_seed() -> None:
    """Else a failure could not be run again; whether the story is kept makes no difference."""
    seed = SEEDS[0]
    program = (
        "from simulation.run import Feature, Plan, simulated\n"
        "from simulation.wire.faults import WireFaultKind\n"
        f"for plan in (Plan({seed}, peace_s={PEACE_S}), Plan({OF_BYTES})):\n"
        "    print(simulated(plan).digest)"
    )
    paths = [ROOT / "operator", ROOT / "devcluster/src", ROOT / "tests"]
    environment = {**os.environ, "PYTHONHASHSEED": "1234", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == [outcome(seed).digest, outcome_of_bytes().digest]
    assert outcome(SEEDS[1]).digest != outcome(seed).digest


@pytest.mark.parametrize("bug", CHEAP)
def test_a_planted_bug_is_found(bug: str) -> None:
    """Those that nearly every seed finds; ``make simulate ARGS=--planted`` looks for all."""
    find = found(bug, (3, 1, 2))  # the third takes the shortest

    assert find.is_good, str(find)


def test_what_once_broke_a_promise_does_not_again() -> None:
    """One of them; ``make simulate`` runs all."""
    regression = next(each for each in REGRESSIONS if each.seed == 11)

    assert simulated(regression.plan).violations == []


def test_a_bug_that_cannot_be_planted_any_more_is_an_error() -> None:
    """A changed operator must not make the search for a bug pass, nor look like a find."""

    def slip(operator: Operator) -> None:
        replaced(operator, "no_such_part", lambda _: None)

    with pytest.raises(AttributeError, match="no_such_part"):
        simulated(Plan(1, faulty_s=2.0, mutate=slip))


def test_each_planted_bug_has_a_run() -> None:
    """Also those that need picked kinds of faults, which the whole table comes to last."""
    for bug in (*PLANTED, *NARROW, *FEATURED):
        plan = planned(bug, 7)

        assert plan.mutate.__name__ == bug
        picked = NARROW[bug][1] if bug in NARROW else FEATURED[bug][2] if bug in FEATURED else None
        assert plan.kinds == picked
