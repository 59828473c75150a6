"""Metrics of descheduler and kube-scheduler, and ours: the tables of docs/metrics.md.

Source: descheduler v0.36, ``metrics/metrics.go``; kube-scheduler v1.36, ``pkg/scheduler/metrics/metrics.go``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HEAD = """
## From descheduler

What to query instead of a metric of descheduler v0.36. Its `profile` is our `policy`. Namespaces and nodes
are in the Eviction records, not in labels.

| descheduler | Plimsoll | Differs |
| --- | --- | --- |
"""


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A metric of descheduler's and the one of ours that answers the same question.

    Attributes:
        theirs: Its name, "" where descheduler has none; with the label values that are meant, if not all.
        ours: The name without labels.
        selector: The labels that select the same in ours.
        differs: What is not the same.
    """

    theirs: str
    ours: str
    selector: str = ""
    differs: str = ""


_EVICTED = "descheduler_pods_evicted_total"

COUNTERPARTS = (
    Counterpart(
        f'{_EVICTED}{{result="success"}}',
        "plimsoll_rebalancer_records_total",
        '{phase="Evicted"}',
        'a dry run counts as `phase="Predicted"`, a surge as `phase="Surging"`',
    ),
    Counterpart(
        f'{_EVICTED}{{result="error"}}',
        "plimsoll_rebalancer_records_total",
        '{phase=~"Blocked|Failed"}',
        "`Blocked` is a PodDisruptionBudget; `Failed` also counts evictions whose replacement was not ready",
    ),
    Counterpart(
        f'{_EVICTED}{{result=~"maximum number of .*"}}',
        "plimsoll_rebalancer_refused_candidates_total",
        '{reason=~".*Limit"}',
        "other refusals are counted as well, each by its reason",
    ),
    Counterpart(
        "descheduler_loop_duration_seconds",
        "plimsoll_rebalancer_run_duration_seconds",
        differs="by policy, as each has its own schedule; the buckets are the same",
    ),
    Counterpart(
        "descheduler_strategy_duration_seconds",
        "plimsoll_rebalancer_strategy_duration_seconds",
        differs="includes the proofs of candidates, not the evictions; the buckets are the same",
    ),
    Counterpart(
        "descheduler_build_info", "plimsoll_build_info", differs="the value is 1, descheduler's is 0"
    ),
    Counterpart("", "plimsoll_rebalancer_candidates_total"),
    Counterpart("", "plimsoll_rebalancer_runs_total"),
    Counterpart("", "plimsoll_rebalancer_last_success_timestamp_seconds"),
    Counterpart("", "plimsoll_rebalancer_violations"),
    Counterpart("", "plimsoll_rebalancer_imbalance_percentage_points"),
)


def counterparts_table() -> str:
    """The section of the page, in Markdown."""
    return HEAD + "".join(
        f"| {_code(each.theirs)} | {_code(each.ours + each.selector)} | {each.differs} |\n"
        for each in COUNTERPARTS
    )


def _code(name: str) -> str:
    return "`" + name.replace("|", "\\|") + "`" if name else "none"


KUBE_SCHEDULER_HEAD = """
## From kube-scheduler

Every metric of kube-scheduler v1.36. Where the same name with our prefix exists, its labels and meaning are
the same.

| kube-scheduler | Plimsoll | Differs |
| --- | --- | --- |
"""

#: Name without ``scheduler_`` and a remark; ours is the same with ``plimsoll_scheduler_``.
SAME: Mapping[str, str] = {
    "schedule_attempts_total": "",
    "scheduling_attempt_duration_seconds": "",
    "scheduling_algorithm_duration_seconds": "",
    "pod_scheduling_sli_duration_seconds": "",
    "pod_scheduling_attempts": "",
    "pending_pods": "",
    "queue_incoming_pods_total": "",
    "unschedulable_pods": "",
    "preemption_victims": "",
    "preemption_attempts_total": "",
    "framework_extension_point_duration_seconds": "",
    "plugin_execution_duration_seconds": "a call judges all nodes, not one",
    "plugin_evaluation_total": "calls whose result is cached are not counted",
    "queueing_hint_execution_duration_seconds": "",
    "event_handling_duration_seconds": "",
    "permit_wait_duration_seconds": "",
    "cache_size": "",
    "resourceclaim_creates_total": "",
    "dra_bindingconditions_allocations_total": "",
    "dra_bindingconditions_wait_duration_seconds": "",
}

#: Full names of both, ours "" where Plimsoll has no such metric, and why.
OTHER: Sequence[tuple[str, str, str]] = (
    ("scheduler_goroutines", "plimsoll_event_loop_tasks", "tasks of the event loop, not split by operation"),
    ("scheduler_inflight_events", "", "events are not kept while attempts are under way"),
    ("scheduler_preemption_goroutines_duration_seconds", "", "victims are evicted in tasks"),
    ("scheduler_preemption_goroutines_execution_total", "", "likewise"),
    ("scheduler_batch_attempts_total", "", "pods of one template share results without batches"),
    ("scheduler_batch_cache_flushed_total", "", "likewise"),
    ("scheduler_get_node_hint_duration_seconds", "", "likewise"),
    ("scheduler_store_schedule_results_duration_seconds", "", "likewise"),
    ("scheduler_async_api_call_execution_total", "plimsoll_rest_client_requests_total", "all requests"),
    (
        "scheduler_async_api_call_execution_duration_seconds",
        "plimsoll_rest_client_request_duration_seconds",
        "all requests",
    ),
    ("scheduler_pending_async_api_calls", "plimsoll_scheduler_inflight_bindings", "bindings and preemptions"),
    ("scheduler_podgroup_schedule_attempts_total", "", "PodGroups have events and conditions"),
    ("scheduler_podgroup_scheduling_attempt_duration_seconds", "", "likewise"),
    ("scheduler_podgroup_scheduling_algorithm_duration_seconds", "", "likewise"),
    ("scheduler_volume_binder_cache_requests_total", "", "there is no such cache"),
    (
        "scheduler_volume_scheduling_stage_error_total",
        "plimsoll_scheduler_plugin_failures_total",
        "of all plugins",
    ),
    ("leader_election_master_status", "plimsoll_leader_election_master_status", ""),
    ("rest_client_requests_total", "plimsoll_rest_client_requests_total", "without the label host"),
    (
        "rest_client_request_duration_seconds",
        "plimsoll_rest_client_request_duration_seconds",
        "by method only",
    ),
)


def kube_scheduler_rows() -> list[tuple[str, str, str]]:
    """Returns each metric of kube-scheduler, ours or "", and what differs."""
    same = [(f"scheduler_{name}", f"plimsoll_scheduler_{name}", note) for name, note in SAME.items()]
    return [*same, *OTHER]


def kube_scheduler_table() -> str:
    """Returns the section of the page, in Markdown."""
    return KUBE_SCHEDULER_HEAD + "".join(
        f"| {_code(theirs)} | {_code(ours)} | {note} |\n" for theirs, ours, note in kube_scheduler_rows()
    )
