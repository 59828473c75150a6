"""Reports of others' end-to-end suites are read and compared; the suites themselves need built programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from upstream_suite.containers import exit_code, interval_s
from upstream_suite.results import (
    FAILS,
    PASSES,
    BrokenSuiteError,
    Comparison,
    failures,
    failures_of_go,
    read,
    read_go,
)
from upstream_suite.specs import DESCHEDULER_LEFT_OUT, FOCUS, LEFT_OUT

FITS = "[sig-scheduling] SchedulerPredicates [Serial] validates resource limits [Conformance]"
PREEMPTS = "[sig-scheduling] SchedulerPreemption [Serial] validates basic preemption works [Conformance]"
SPREADS = "[sig-scheduling] Multi-AZ Clusters should spread the pods"


def report(*cases: str) -> str:
    """A report as ginkgo writes it."""
    return f"<testsuites><testsuite name='Kubernetes e2e suite'>{''.join(cases)}</testsuite></testsuites>"


def case(name: str, inside: str = "") -> str:
    """One node of the suite: [It] is a spec."""
    return f"<testcase name='{name}' classname='Kubernetes e2e suite'>{inside}</testcase>"


def spec(name: str, inside: str = "") -> str:
    """A spec."""
    return case(f"[It] {name}", inside)


FAILED = (
    "<failure type='failed'>\n[FAILED] expected pod to be preempted\nIn [It] at: preemption.go:200</failure>"
)
LEFT = "<skipped message='skipped'/>"


def test_each_spec_that_ran_has_its_result() -> None:
    text = report(
        case("[SynchronizedBeforeSuite]"),
        spec(FITS),
        spec(PREEMPTS, FAILED),
        spec(SPREADS, "<skipped message='skipped - only in clouds'/>"),
        spec("[sig-network] Services should serve", LEFT),
        spec("[sig-scheduling] panics", "<error type='panicked'>boom</error>"),
    )

    assert read(text) == {
        FITS: PASSES,
        PREEMPTS: FAILS,
        SPREADS: "skips itself: only in clouds",
        "[sig-scheduling] panics": FAILS,
    }
    assert failures(text) == {
        PREEMPTS: "[FAILED] expected pod to be preempted",
        "[sig-scheduling] panics": "boom",
    }


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([spec(FITS, LEFT)], "no spec ran"),
        ([case("[SynchronizedBeforeSuite]", "<failure>no nodes</failure>"), spec(FITS)], "no nodes"),
        ([spec(FITS, "<skipped message='pending'/>")], "pending"),
    ],
)
def test_a_suite_that_did_not_run_has_no_results(cases: list[str], said: str) -> None:
    """Otherwise, nothing that ran would look like nothing that failed."""
    with pytest.raises(BrokenSuiteError, match=said):
        read(report(*cases))


def compared(**runs: dict[str, str]) -> Comparison:
    """The results of runs of one version."""
    return Comparison("Kubernetes 1.36.2", runs)


def test_schedulers_stand_side_by_side() -> None:
    """A spec that skips itself is judged by none; one that was not reached is not passed."""
    found = compared(
        theirs={FITS: PASSES, PREEMPTS: PASSES, SPREADS: "skips itself: a | b"}, ours={PREEMPTS: FAILS}
    )

    assert found.table().splitlines()[0] == "| Spec | theirs | ours |"
    assert f"| {FITS} | passes | did not run |" in found.table()
    assert f"| {PREEMPTS} | passes | **fails** |" in found.table()
    assert f"| {SPREADS} | skips itself: a \\| b | did not run |" in found.table()
    assert found.summary() == "2 of 2 pass with theirs, 0 of 1 pass with ours."
    assert found.worse == [FITS, PREEMPTS]


def test_what_the_reference_fails_is_held_against_no_other() -> None:
    assert compared(theirs={FITS: FAILS}, ours={FITS: FAILS, PREEMPTS: PASSES}).worse == []
    assert compared(theirs={FITS: FAILS}, ours={FITS: PASSES}).worse == []
    assert compared(theirs={FITS: PASSES}).worse == []


def test_as_many_evictions_belong_to_the_same_result() -> None:
    run = {FITS: f"{PASSES}, 2 evicted", PREEMPTS: f"{PASSES}, 0 evicted", SPREADS: f"{FAILS}, 1 evicted"}
    found = compared(theirs=run, ours={**run, PREEMPTS: f"{PASSES}, 1 evicted", SPREADS: PASSES})

    assert found.summary() == "2 of 3 pass with theirs, 3 of 3 pass with ours."
    assert found.worse == [PREEMPTS]


def test_a_page_has_one_section_of_each_version() -> None:
    """The newest run of a version replaces its section; the newest version of a suite is first."""
    page = empty = "# Suite\n\nAbout it.\n\n## What is needed\n\nPrograms.\n"
    for suite in ("descheduler 0.9.2", "Kubernetes 1.36.2", "descheduler 0.36.0"):
        page = Comparison(suite, {"a": {FITS: FAILS}}).on_page(page)
    again = Comparison("descheduler 0.36.0", {"a": {FITS: PASSES}}).on_page(page)

    section = "## Kubernetes 1.36.2\n\n0 of 1 pass with a.\n\n| Spec | a |\n"
    assert page.startswith(f"{empty}\n{section}")
    assert re.findall(r"^## (.* \d.*)", page, re.MULTILINE) == [
        "Kubernetes 1.36.2",
        "descheduler 0.36.0",
        "descheduler 0.9.2",
    ]
    before, heading, after = page.partition("## descheduler 0.36.0")
    assert again == before + heading + after.replace("0 of 1", "1 of 1", 1).replace(FAILS, PASSES, 1)


#: What a test binary of Go prints: a test says what it does as it goes, and the outcomes follow.
OF_GO = """\
=== RUN   TestRemoveDuplicates
    e2e_test.go:90: Creating testing namespace
=== RUN   TestRemoveDuplicates/four
    e2e_test.go:201: Creating deployment
=== RUN   TestRemoveDuplicates/five
    e2e_test.go:251: Error waiting for descheduler running: context deadline exceeded
    e2e_test.go:255: Unexpected number of pods have been evicted, got 3, expected 2
    e2e_test.go:221: Deleting "descheduler" deployment...
--- FAIL: TestRemoveDuplicates (130.1s)
    --- PASS: TestRemoveDuplicates/four (40.1s)
    --- FAIL: TestRemoveDuplicates/five (90.1s)
=== RUN   TestFailedPods
--- PASS: TestFailedPods (5.0s)
=== RUN   TestTooManyRestarts
=== RUN   TestTooManyRestarts/none
=== NAME  TestTooManyRestarts
    e2e_test.go:12: Unexpected err: EOF
--- FAIL: TestTooManyRestarts (9.0s)
    --- SKIP: TestTooManyRestarts/none (0.0s)
FAIL
"""


def test_each_case_of_a_test_has_its_result_and_its_evictions() -> None:
    """A test that fails and whose cases do not has failed around them."""
    counts = [("e2e-testremoveduplicates", 2), ("e2e-testfailedpods", 1), ("e2e-testremoveduplicates", 3)]

    assert read_go(OF_GO, counts) == {
        "TestRemoveDuplicates/four": f"{PASSES}, 2 evicted",
        "TestRemoveDuplicates/five": f"{FAILS}, 3 evicted",
        "TestFailedPods": f"{PASSES}, 1 evicted",
        "TestTooManyRestarts": FAILS,
        "TestTooManyRestarts/none": "skips itself: -",
    }
    assert failures_of_go(OF_GO) == {
        "TestRemoveDuplicates/five": "Error waiting for descheduler running: context deadline exceeded",
        "TestTooManyRestarts": "Unexpected err: EOF",
    }


@pytest.mark.parametrize(
    ("output", "said"),
    [("testing: warning: no tests to run\nPASS\n", "no test ran"), (f"{OF_GO}\npanic: nil", "nil")],
)
def test_tests_that_did_not_run_have_no_results(output: str, said: str) -> None:
    with pytest.raises(BrokenSuiteError, match=said):
        read_go(output)


@pytest.mark.parametrize(
    ("container", "code"),
    [
        ({"image": "pause"}, None),
        ({"command": ["/bin/false"]}, 1),
        ({"command": ["/bin/sh", "-c", "exit 0"]}, 0),
        ({"command": ["/bin/sh"], "args": ["-c", "sleep 1s && exit 3"]}, 3),
        ({"command": ["/bin/sh"], "args": ["-c", "sleep 1d"]}, None),
    ],
)
def test_a_container_ends_as_its_command_does(container: dict[str, object], code: int | None) -> None:
    assert exit_code(container) == code


def test_a_descheduler_runs_as_often_as_its_deployment_says() -> None:
    given = ["--policy-config-file", "/policy-dir/policy.yaml", "--descheduling-interval"]

    assert [interval_s([*given, each, "--v", "4"]) for each in ("10s", "100m", "2h")] == [10, 6000, 7200]


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        (FITS, True),
        (SPREADS, True),
        ("[sig-apps] DisruptionController should create a PodDisruptionBudget [Conformance]", True),
        ("[sig-apps] Deployment should run the lifecycle of a Deployment [Conformance]", True),
        ("[sig-apps] Deployment deployment should support rollover [Conformance]", False),
        ("[sig-apps] Job should run a job to completion", False),
        ("[sig-network] Services should serve", False),
    ],
)
def test_expressions_choose_specs(name: str, runs: bool) -> None:
    is_in_focus = any(re.search(each, name) for each in FOCUS)

    assert (is_in_focus and not any(re.search(each, name) for each in LEFT_OUT)) is runs


def test_the_page_names_what_is_left_out() -> None:
    page = (Path(__file__).parents[2] / "docs/upstream-e2e.md").read_text(encoding="utf-8")

    for expression, reason in (LEFT_OUT | DESCHEDULER_LEFT_OUT).items():
        assert f"| `{expression}` | {reason} |" in page.replace("\\|", "|"), expression
