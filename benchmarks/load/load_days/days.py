"""Plays one day of one policy, and counts."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from load_days.book import BookFeed, ForecastFigures
from load_days.measures import DayFigures, Tally
from load_days.policies import ComparedPolicy, a_profile
from load_days.readings import History, LoadView, MetricsSource
from load_days.scenarios import HOUR_S, Scenario
from load_days.traces import Traces
from load_days.world import World


@dataclass(frozen=True, slots=True)
class Day:
    """One row of the raw results."""

    scenario: str
    policy: str
    seed: int
    figures: DayFigures
    forecasts: ForecastFigures
    reasons: Mapping[str, int]
    seconds: float

    def row(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "scenario": self.scenario,
            "policy": self.policy,
            "seed": self.seed,
            "cpu_seconds": round(self.seconds, 1),
            **_rounded(asdict(self.figures)),
            "forecasts": _rounded(asdict(self.forecasts)),
            "reasons": dict(self.reasons),
        }


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in figures.items()}


def play(scenario: Scenario, policy: ComparedPolicy, traces: Traces, seed: int) -> Day:
    """A day from its beginning to its end."""
    began = time.process_time()
    profile = policy.profile()
    world = World(scenario, traces, seed, profile)
    view = LoadView(world.cluster)
    view.history = History(world)
    world.cluster.adopt(view)
    source, tally = MetricsSource(world), Tally(world, policy.line, policy.by_deviation)
    book = None if policy.book is None else BookFeed(world, policy.book)
    world.start(profile if policy.places_first else a_profile())
    mover = policy.mover(world, view.history, profile)
    steps = int(scenario.seconds / scenario.grain_s)
    for step in range(1, steps + 1):
        world.advance()
        if step * scenario.grain_s % scenario.reading_s == 0:
            found = source.take()
            if book is not None:
                book.learn(found)
            if found is not None:
                view.history.learn(found)
                world.heard += 1
                mover.learn(found)
                world.place_waiting()
        if step * scenario.grain_s % scenario.deciding_s == 0:
            mover.decide(tally)
        for placement in world.placements:
            tally.placed(placement)
            if book is not None and tally.counts:
                book.placed(placement)
        world.placements.clear()
        tally.step()
        if book is not None and tally.counts and step * scenario.grain_s % HOUR_S == 0:
            book.judge_peaks()
    forecasts = ForecastFigures() if book is None else book.figures()
    seconds = time.process_time() - began
    return Day(scenario.name, policy.key, seed, tally.figures(), forecasts, dict(tally.reasons), seconds)
