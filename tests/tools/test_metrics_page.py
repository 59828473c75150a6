"""docs/metrics.md says what the code says."""

import re
from pathlib import Path

from pages.metric_counterparts import COUNTERPARTS, kube_scheduler_rows
from pages.metrics import families, page
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.limits import LimitLevel

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(families()), "run `make docs`"


def test_every_metric_of_kube_scheduler_that_we_have_bears_its_labels() -> None:
    """Names and labels of kube-scheduler v1.36, ``pkg/scheduler/metrics/metrics.go``."""
    upstream = {
        "schedule_attempts": ("result", "profile"),
        "scheduling_attempt_duration_seconds": ("result", "profile"),
        "scheduling_algorithm_duration_seconds": (),
        "pod_scheduling_sli_duration_seconds": ("attempts",),
        "pod_scheduling_attempts": (),
        "framework_extension_point_duration_seconds": ("extension_point", "status", "profile"),
        "plugin_execution_duration_seconds": ("plugin", "extension_point", "status"),
        "plugin_evaluation": ("plugin", "extension_point", "profile"),
        "permit_wait_duration_seconds": ("result",),
        "pending_pods": ("queue",),
        "unschedulable_pods": ("plugin", "profile"),
        "preemption_attempts": (),
        "preemption_victims": (),
        "cache_size": ("type",),
    }
    ours = {family.name.removeprefix("plimsoll_scheduler_"): labels for family, labels in families()}

    assert {name: ours.get(name) for name in upstream} == upstream


def test_the_table_of_counterparts_names_metrics_labels_and_values_that_exist() -> None:
    """All of descheduler v0.36, and next to each a metric of ours that a scrape shows."""
    known = {
        family.name + ("_total" if family.type == "counter" else ""): labels for family, labels in families()
    }
    values = {"phase": set(Phase), "reason": {level.value for level in LimitLevel}}

    for each in COUNTERPARTS:
        assert each.ours in known, each
        for label, _, chosen in re.findall(r'(\w+)(=~?)"([^"]*)"', each.selector):
            assert label in known[each.ours], each
            assert any(re.fullmatch(chosen, value) for value in values[label]), each  # type: ignore[attr-defined] # known to exist in this test
    assert {each.theirs.split("{")[0] for each in COUNTERPARTS} == {
        "descheduler_pods_evicted_total",
        "descheduler_loop_duration_seconds",
        "descheduler_strategy_duration_seconds",
        "descheduler_build_info",
        "",
    }


def test_every_metric_of_kube_scheduler_has_a_row_and_ours_exist() -> None:
    """And each of ours that has kube-scheduler's name is in the table, so a new one needs a row."""
    known = {family.name + ("_total" if family.type == "counter" else "") for family, _ in families()}
    rows = kube_scheduler_rows()

    assert {ours for _, ours, _ in rows if ours} <= known
    assert all(ours or note for _, ours, note in rows)
    named = {ours for _, ours, _ in rows}
    of_our_own = {
        "binding_failures_total",
        "contested_devices_total",
        "extender_asks_total",
        "extender_duration_seconds",
        "inflight_bindings",
        "kubelet_refusals_total",
        "plugin_failures_total",
        "pod_group_members",
        "pod_groups",
        "pod_scheduled_after_flush_total",
        "stalled_pods",
    }
    scheduling = {name for name in known if name.startswith("plimsoll_scheduler_")}
    assert scheduling - named <= {f"plimsoll_scheduler_{name}" for name in of_our_own}


def test_a_unit_is_read_from_the_name() -> None:
    """Prometheus' rule: the last words of a name."""
    lines = [line for line in page(families()).splitlines() if line.startswith("| `plimsoll_")]
    rows = {line.split("`")[1]: line.split("|")[4].strip() for line in lines}

    assert rows["plimsoll_rebalancer_run_duration_seconds"] == "seconds"
    assert rows["plimsoll_rebalancer_imbalance_percentage_points"] == "percentage points"
    assert rows["plimsoll_rebalancer_moves_in_flight"] == "1"
