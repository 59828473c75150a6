"""Describes what the operator would do with a plan, and when it runs the policy next."""

from collections.abc import Iterator
from datetime import datetime

from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.schedules import Schedule
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.counted import counted
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.moves import EvictionPlan
from plimsoll.policies.run_figures import sentence_of
from plimsoll.policies.schedule import next_fire

#: The outcome of moves, by mode.
_DEEDS = {
    Mode.DRY_RUN: "predict {moves} and evict nothing (mode DryRun)",
    Mode.APPROVE: "propose {moves} and wait for approval (mode Approve)",
    Mode.ENFORCE: "make {moves} (mode Enforce)",
}


def schedule_in_words(schedule: Schedule) -> str:
    """A policy's schedule in words."""
    if schedule.cron is not None:
        text = f"cron {schedule.cron} ({schedule.time_zone or 'UTC'})"
    else:
        text = f"every {_duration(schedule.interval_seconds or 0)}"
    return text + (f"; also after {', '.join(schedule.triggers)}" if schedule.triggers else "")


def next_run(policy: SchedulingPolicy, told: datetime | None, now: datetime) -> datetime | None:
    """Time of the next run: from the status (``told``), else from the cron expression; None without both."""
    if told is not None and told >= now:
        return told
    return next_fire((policy.spec.rebalancing or RebalancingSpec()).schedule, now)


def outlook(policy: SchedulingPolicy, moves: int, moment: datetime | None) -> str:
    """A sentence about what the operator would do with this many moves, and when (its ``next_run``)."""
    spec = policy.spec.rebalancing or RebalancingSpec()
    if not moves:
        deed = f"move no pod (mode {spec.mode})"
    else:
        deed = _DEEDS[spec.mode].format(moves=counted(moves, "move"))
    when = f"next at {moment:%Y-%m-%dT%H:%M:%SZ}" if moment else schedule_in_words(spec.schedule)
    return f"the operator would {deed}, {when}"


def notes(policy: SchedulingPolicy, made: EvictionPlan, memory: MoveHistory) -> Iterator[str]:
    """Facts that the plan could not know, and strategies' notes about the run."""
    spec = policy.spec.rebalancing or RebalancingSpec()
    planner = Planner(spec.planner)
    resting, _ = memory.rest(policy.metadata.name)
    if resting:
        yield resting
    for failure in made.failures:
        yield sentence_of(failure)
    yield from dict.fromkeys(f"{strategy}: {remark}" for strategy, remark in made.remarks)
    if planner is Planner.UPSTREAM:
        yield "planner Upstream evicts while it decides: refused evictions change what follows"
    elif spec.anomaly_rounds > 1:
        yield (
            f"anomalyRounds is {spec.anomaly_rounds}: how often nodes were found over-used before is known to"
            " the operator only; this plan counts as the first run"
        )
    if planner is Planner.OPTIMAL:
        yield f"the search ends after {spec.optimizer.time_limit_seconds} s: a slower machine may find others"


def _duration(seconds: int) -> str:
    """Seconds as a Go duration."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"
