"""Each hook of metrics and log, called once, changes or says what it is about, and nothing else."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from plimsoll.ports.observer import Observer
from plimsoll.telemetry.logs import LoggingObserver
from plimsoll.telemetry.rebalancing import RebalancingMetrics
from plimsoll.telemetry.scheduling import MetricsObserver

#: What is passed for a parameter, by its annotation; a text is the parameter's own name.
VALUES: dict[str, Any] = {
    "int": 3,
    "float": 2.0,
    "float | None": 2.0,
    "bool": True,
    "collections.abc.Mapping[str, int]": {"TooHot": 2, "Protected": 5},
    "collections.abc.Mapping[str, object]": {"fact": 1},
    "collections.abc.Sequence[float]": (4.0, 9.0),
}
#: What rises by how much, by hook: the metric without our prefix, and its labels.
EXPECTED = {
    "attempt_ended": [
        "scheduler_schedule_attempts_total(result, profile) 1",
        "scheduler_scheduling_attempt_duration_seconds_count(result, profile) 1",
        "scheduler_scheduling_attempt_duration_seconds_sum(result, profile) 2",
    ],
    "batch_taken_in": [
        "watch_batch_duration_seconds_count(resource) 1",
        "watch_batch_duration_seconds_sum(resource) 2",
        "watch_events_total(resource) 3",
    ],
    "binding_failed": [
        "scheduler_binding_failures_total(profile, verdict) 1",
    ],
    "bound_after_flush": [
        "scheduler_pod_scheduled_after_flush_total() 1",
    ],
    "claim_created": [
        "scheduler_resourceclaim_creates_total(status) 1",
    ],
    "cycle_ended": [
        "scheduler_scheduling_algorithm_duration_seconds_count() 1",
        "scheduler_scheduling_algorithm_duration_seconds_sum() 2",
    ],
    "devices_awaited": [
        "scheduler_dra_bindingconditions_allocations_total(profile, driver, status) 1",
        "scheduler_dra_bindingconditions_wait_duration_seconds_count(profile, driver, status) 1",
        "scheduler_dra_bindingconditions_wait_duration_seconds_sum(profile, driver, status) 2",
    ],
    "devices_contested": [
        "scheduler_contested_devices_total(profile) 1",
    ],
    "event_handled": [
        "scheduler_event_handling_duration_seconds_count(event) 1",
        "scheduler_event_handling_duration_seconds_sum(event) 2",
    ],
    "extender_asked": [
        "scheduler_extender_asks_total(extender, point, result) 1",
        "scheduler_extender_duration_seconds_count(extender, point) 1",
        "scheduler_extender_duration_seconds_sum(extender, point) 2",
    ],
    "failed": [
        "contained_failures_total(where) 1",
    ],
    "hint_asked": [
        "scheduler_queueing_hint_execution_duration_seconds_count(plugin, event, hint) 1",
        "scheduler_queueing_hint_execution_duration_seconds_sum(plugin, event, hint) 2",
    ],
    "object_skipped": [
        "watch_skipped_objects_total(resource) 1",
    ],
    "permit_waited": [
        "scheduler_permit_wait_duration_seconds_count(result) 1",
        "scheduler_permit_wait_duration_seconds_sum(result) 2",
    ],
    "plugin_called": [
        "scheduler_plugin_execution_duration_seconds_count(plugin, Point, Error) 1",
        "scheduler_plugin_execution_duration_seconds_sum(plugin, Point, Error) 2",
    ],
    "plugin_failed": [
        "scheduler_plugin_failures_total(plugin, Point) 1",
    ],
    "pod_bound": [
        "scheduler_pod_scheduling_attempts_count() 1",
        "scheduler_pod_scheduling_attempts_sum() 3",
        "scheduler_pod_scheduling_sli_duration_seconds_count(3) 1",
        "scheduler_pod_scheduling_sli_duration_seconds_sum(3) 2",
    ],
    "pod_queued": [
        "scheduler_queue_incoming_pods_total(queue, event) 1",
    ],
    "pod_refused": [
        "scheduler_kubelet_refusals_total(profile, reason) 1",
    ],
    "point_passed": [
        "scheduler_framework_extension_point_duration_seconds_count(Point, Error, profile) 1",
        "scheduler_framework_extension_point_duration_seconds_sum(Point, Error, profile) 2",
    ],
    "preempted": [
        "scheduler_preemption_attempts_total() 1",
        "scheduler_preemption_victims_count() 1",
        "scheduler_preemption_victims_sum() 3",
    ],
    "watch_failed": [
        "watch_failures_total(resource) 1",
    ],
    "watch_listed": [
        "watch_lists_total(resource) 1",
    ],
    "forecast_checked": [
        "load_forecast_error_ratio_count(resource) 1",
        "load_forecast_error_ratio_sum(resource) 2",
    ],
    "forecast_placed": [
        "rebalancer_forecasts_total(policy, landing) 1",
    ],
    "move_reversed": [
        "rebalancer_reversed_moves_total(policy) 1",
    ],
    "notice_ended": [
        "notices_total(result) 1",
    ],
    "record_changed": [
        "rebalancer_records_total(policy, strategy, phase) 1",
    ],
    "record_dropped": [
        "rebalancer_dropped_records_total(policy, why) 1",
    ],
    "records_exported": [
        "audit_records_total(result) 3",
    ],
    "run_ended": [
        "rebalancer_candidates_total(policy) 3",
        "rebalancer_planned_moves_total(policy) 3",
        "rebalancer_refused_candidates_total(policy, Protected) 5",
        "rebalancer_refused_candidates_total(policy, TooHot) 2",
    ],
    "run_finished": [
        "rebalancer_run_duration_seconds_count(policy) 1",
        "rebalancer_run_duration_seconds_sum(policy) 2",
        "rebalancer_runs_total(policy, result) 1",
    ],
    "strategy_ended": [
        "rebalancer_strategy_duration_seconds_count(policy, strategy) 1",
        "rebalancer_strategy_duration_seconds_sum(policy, strategy) 2",
    ],
    "usage_asked": [
        "load_source_requests_total(source, result) 1",
    ],
    "usage_read": [
        "load_reading_age_seconds_count(source) 2",
        "load_reading_age_seconds_sum(source) 13",
    ],
}


#: The lines of the log, by hook: level, event, and what is said with it.
SAID = {
    "extender_asked": [],
    "failed": ["error contained failure: problem=problem where=where"],
    "leader_seen": ["info leader: holder=holder lease=name"],
    "leadership_changed": ["info leading: lease=name"],
    "move_told": ["info move: step: decision=decision fact=1"],
    "notice_ended": ["warning notice not delivered: problem=problem result=result"],
    "object_skipped": ["warning object cannot be read: name=name problem=problem resource=resource"],
    "placement_told": [],
    "plugin_failed": [
        "error plugin failed: plugin=plugin point=point problem=problem",
        "debug plugin raised: plugin=plugin point=point trace=trace",
    ],
    "plugin_slow": ["warning plugin is slow: plugin=plugin point=point seconds=2.0"],
    "pod_refused": [
        (
            "warning pod not admitted: after_s=2.0 decision=decision node=node pod=pod profile=profile"
            " reason=reason"
        )
    ],
    "record_dropped": ["debug record dropped: policy=policy why=why"],
    "records_exported": ["error records not exported: count=3 problem=problem result=result"],
    "renewal_delayed": ["warning lease renewed late: late_s=2.0 lease=name why=why"],
    "run_ended": [
        "info rebalancing planned: considered=3 planned=3 policy=policy refused={'TooHot': 2, 'Protected': 5}"
    ],
    "watch_listed": ["debug listed: objects=3 resource=resource"],
}


def own_hooks(observer: type[Observer]) -> list[str]:
    return sorted(
        name for name in vars(observer) if callable(getattr(observer, name)) and not name.startswith("_")
    )


def arguments(hook: str) -> dict[str, Any]:
    parameters = [*inspect.signature(getattr(Observer, hook)).parameters.values()][1:]
    return {
        each.name: VALUES.get(inspect.formatannotation(each.annotation), each.name) for each in parameters
    }


def changes(observer: type[Observer], hook: str) -> list[str]:
    """What rises by how much; without buckets, and without when a series was created."""
    registry = CollectorRegistry()
    made = observer(registry)  # type: ignore[call-arg] # both take a registry

    def samples() -> dict[str, float]:
        return {
            f"{each.name.removeprefix('plimsoll_')}({', '.join(each.labels.values())})": each.value
            for family in registry.collect()
            for each in family.samples
            if not each.name.endswith(("_bucket", "_created"))
        }

    before = samples()
    getattr(made, hook)(**arguments(hook))
    found = {name: value - before.get(name, 0.0) for name, value in samples().items()}
    return [f"{name} {rise:g}" for name, rise in sorted(found.items()) if rise]


@pytest.mark.parametrize(
    ("observer", "hook"),
    [(observer, hook) for observer in (MetricsObserver, RebalancingMetrics) for hook in own_hooks(observer)],
)
def test_each_hook_changes_what_it_is_about(observer: type[Observer], hook: str) -> None:
    assert changes(observer, hook) == EXPECTED[hook]


@pytest.mark.parametrize("hook", own_hooks(LoggingObserver))
def test_each_hook_says_what_it_is_about(hook: str) -> None:
    with capture_logs() as lines:
        getattr(LoggingObserver(lambda: 0.0), hook)(**arguments(hook))

    assert [
        " ".join(
            [line.pop("log_level"), f"{line.pop('event')}:", *(f"{k}={v}" for k, v in sorted(line.items()))]
        )
        for line in lines
    ] == SAID[hook]


@pytest.mark.parametrize(("result", "count"), [("sent", 0), ("failed", 1), ("dropped", 1)])
def test_a_notice_that_was_not_sent_is_said(result: str, count: int) -> None:
    with capture_logs() as lines:
        LoggingObserver(lambda: 0.0).notice_ended(result, "no route")

    assert len(lines) == count
