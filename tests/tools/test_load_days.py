"""The world of the load benchmark is a day that can be trusted: its truth, its readings, its counts."""

from dataclasses import replace

import numpy as np
import pytest

from load_days.days import play
from load_days.demand import Demand, Shape
from load_days.measures import Tally
from load_days.policies import POLICIES, a_profile
from load_days.readings import History, MetricsSource
from load_days.scenarios import SCENARIOS, Fault, Happening, Scenario
from load_days.score_plugins import mean_over
from load_days.traces import SAMPLES, synthetic
from load_days.world import World
from plimsoll.load.readings import LoadSettings

TRACES = synthetic(rows=40)
SMALL = Scenario("small", 0.6, nodes=5, hours=1.0, warm_up=0.0, begins=0.25)
HOT = replace(SMALL, mean=0.7, hours=0.4, begins=0.1, happenings=frozenset({Happening.BURST}))


def a_world(scenario: Scenario = SMALL, seed: int = 1) -> World:
    world = World(scenario, TRACES, seed, a_profile())
    world.start(a_profile())
    return world


def test_replicas_share_their_mean_and_as_much_of_their_swings_as_is_asked_for() -> None:
    def correlation(rho: float) -> float:
        demand = Demand(TRACES, 1.0, rho, 0.0, 60.0, 0)
        found = []
        for row in range(20):
            for own in range(2):
                demand.add(Shape(row, 0.0, (row + 17 * own + 5) % 40, 31.0 * own, 1_000, 2**30), 0.0)
            first, second = demand.series(2 * row, 0.0, SAMPLES), demand.series(2 * row + 1, 0.0, SAMPLES)
            found.append(np.corrcoef(first, second)[0, 1])
            assert first.mean() == pytest.approx(1_000 * TRACES.cpu[row, :SAMPLES].mean(), rel=0.05)
        return float(np.mean(found))

    assert correlation(1.0) == pytest.approx(1.0)
    assert correlation(0.5) == pytest.approx(0.5, abs=0.12)
    assert correlation(0.0) == pytest.approx(0.0, abs=0.12)


def test_a_day_uses_what_its_scenario_says_and_places_what_fits() -> None:
    world = a_world()
    slots, cpu, _ = world.use()
    assert cpu.sum() / (5 * TRACES.node_cpu) == pytest.approx(0.6, rel=0.15)
    assert len(slots) == len(world.tenants) - len(world.waiting) > 20
    assert (world.cluster.requested[:5] <= world.cluster.allocatable[:5]).all()


def test_all_policies_meet_the_same_pods() -> None:
    one, other = a_world(), World(SMALL, TRACES, 1, POLICIES["B6"].profile())
    other.start(a_profile())
    for _ in range(10):
        one.advance()
    assert sorted(one.tenants)[:20] == sorted(one.tenants | other.tenants)[:20]
    assert one.demand.series(3, 0.0, 5).tolist() == other.demand.series(3, 0.0, 5).tolist()


def test_a_replacement_uses_what_the_pod_before_it_did() -> None:
    world = a_world()
    tenant = next(each for each in world.tenants.values() if each.node >= 0)
    before = world.demand.cpu(0.0, np.array([tenant.slot]))
    heir = world.evict(tenant.info.uid)
    world.place_waiting()
    assert heir.heir_of == tenant.node
    assert heir.slot != tenant.slot
    assert world.demand.cpu(0.0, np.array([heir.slot])) == before
    assert world.node_of[tenant.slot] == -1


def test_readings_are_late_and_lack_what_is_silent() -> None:
    world = a_world(replace(SMALL, faults=frozenset({Fault.SILENT_NODES})))
    source = MetricsSource(world)
    assert source.take() is None
    truth = world.by_node(*world.use()[:2])
    world.advance()
    found = source.take()
    assert found is not None
    assert found.taken == 0.0
    assert np.isnan(found.node_cpu[0])
    assert found.node_cpu[1:] == pytest.approx(np.minimum(truth, TRACES.node_cpu)[1:])
    assert not (found.nodes == 0).any()


def test_a_frozen_node_repeats_itself_and_a_source_that_is_gone_says_nothing() -> None:
    world = a_world(replace(SMALL, begins=0.0, faults=frozenset({Fault.FROZEN_NODE}), late_s=0.0))
    source = MetricsSource(world)
    first = source.take()
    for _ in range(5):
        world.advance()
    later = source.take()
    assert first is not None
    assert later is not None
    same = first.node_cpu == later.node_cpu
    assert same.sum() == 1
    assert later.taken == 300.0
    gone = a_world(replace(SMALL, begins=0.0, faults=frozenset({Fault.SOURCE_GONE}), late_s=0.0))
    assert MetricsSource(gone).take() is None


def test_what_happens_happens() -> None:
    world = a_world(replace(SMALL, happenings=frozenset({Happening.NODE_LOSS, Happening.BURST})))
    pods = len(world.tenants)
    while world.now < 0.25 * 3_600.0:
        world.advance()
    assert len(world.names) == 6
    assert len(world.cluster) == 6 - 3
    assert len(world.tenants) > pods + 50


def test_reversals_second_moves_and_wasted_moves_are_counted_apart() -> None:
    world = a_world()
    world.now = 60.0
    tally = Tally(world)
    tenant = next(each for each in world.tenants.values() if each.node >= 0)
    home = tenant.node

    def moved_to(uid: str, node: str) -> str:
        tally.moved(world.tenants[uid])
        heir = world.evict(uid)
        world.settle(heir, node)
        tally.placed(world.placements[-1])
        return heir.info.uid

    away = world.names[(home + 1) % 5]
    first = moved_to(tenant.info.uid, away)
    assert (tally.reversals, tally.again) == (0, 0)
    moved_to(first, world.names[home])
    assert (tally.reversals, tally.again) == (1, 1)
    assert tally.figures().evictions == 2
    world.demand.factor *= 50  # now no spot ends by itself
    before = tally.figures().wasted
    moved_to(next(uid for uid, each in world.tenants.items() if each.node == home), away)
    assert tally.figures().wasted == before
    world.demand.factor = 0.0
    moved_to(next(uid for uid, each in world.tenants.items() if each.node == home), away)
    assert tally.figures().wasted == before + 1


def test_hot_minutes_count_nodes_above_the_line() -> None:
    world = a_world()
    world.now = 60.0
    world.demand.factor *= 100
    tally = Tally(world)
    tally.step()
    figures = tally.figures()
    assert figures.hot_minutes == 5.0
    assert figures.unmet_core_minutes > 0
    world.demand.factor = 0.0
    tally.step()
    assert tally.figures().hot_minutes == 5.0


def test_a_window_of_readings_is_as_long_as_it_says() -> None:
    world = a_world(replace(SMALL, late_s=0.0))
    history, source = History(world), MetricsSource(world)
    for _ in range(10):
        found = source.take()
        assert found is not None
        history.learn(found)
        world.advance()
    assert len(history.window(300.0)) == 5
    expected = np.mean([history.window(60.0 * each)[0] for each in range(1, 6)], axis=0)
    assert mean_over(history, 300.0) == pytest.approx(expected)


@pytest.mark.parametrize("key", ["B1d", "B2", "B3", "B4", "B5d", "B6", "O95", "P2", "P3"])
def test_every_kind_of_policy_plays_a_day(key: str) -> None:
    day = play(HOT, POLICIES[key], TRACES, 2)
    assert day.figures.arrivals > 0
    assert day.row()["policy"] == key


def test_a_day_is_the_same_again() -> None:
    days = [play(HOT, POLICIES["P2"], TRACES, 2) for _ in range(2)]
    assert days[0].figures == days[1].figures


def test_scenarios_are_keyed_by_name() -> None:
    assert all(name == each.name for name, each in SCENARIOS.items())


def test_the_load_book_learns_from_the_readings_and_its_forecasts_are_judged() -> None:
    known = replace(POLICIES["B1d"], book=LoadSettings())
    lasting = replace(TRACES, batches=tuple(replace(each, seconds=86_400.0) for each in TRACES.batches))
    day = play(replace(SMALL, mean=0.7, hours=1.0, deciding_s=300.0), known, lasting, 2)
    assert day.figures.evictions > 0
    assert 0 < day.forecasts.book < day.forecasts.by_request
    assert 0 < day.forecasts.covered <= 100
