"""docs/metrics.md says what the code says."""

from pathlib import Path

from plimsoll.testing.metric_pages import families, page

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == page(families()), "run `make docs`"


def test_every_metric_of_kube_scheduler_that_we_have_bears_its_labels():
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
