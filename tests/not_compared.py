"""A pytest plugin that lists, at the end of a run, comparisons that were left out, each with its reason.

Recordings of kube-scheduler, descheduler and an API server lie next to the checkout, not in it, and some
tests need a real cluster or a tool. Where such a thing is absent its tests are skipped; each reason is a
sentence, and the summary lists every reason once with the number of tests.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

#: Where recordings lie when they are there: next to the checkout.
RECORDINGS = Path(__file__).parents[2] / "shared" / "vectors"

REASONS = {
    "scheduler": "recorded decisions of kube-scheduler 1.36 were not compared, for "
    "../shared/vectors/scheduler is absent; the field cases of tests/cases took their place",
    "descheduler": "recorded runs of descheduler 0.36 were not compared, for "
    "../shared/vectors/descheduler is absent; the field cases of tests/cases took their place",
}
"""Folder of recordings to what is said when it is absent."""


def needs_recordings(name: str) -> pytest.MarkDecorator:
    """Mark a test that compares with the recordings in a folder of this name."""
    return pytest.mark.skipif(not (RECORDINGS / name).is_dir(), reason=REASONS[name])


def not_compared(reports: list[pytest.TestReport]) -> list[str]:
    """A line for each reason of skipped tests, the most frequent first."""
    counted = Counter(_reason_of(each) for each in reports)
    return [f"{reason} ({count} tests)" for reason, count in counted.most_common()]


def _reason_of(report: pytest.TestReport) -> str:
    """The reason of a skipped test, without pytest's prefix."""
    told = report.longrepr
    reason = str(told[2] if isinstance(told, tuple) else told)
    return reason.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the section, when something was skipped."""
    lines = not_compared(terminalreporter.getreports("skipped"))
    if lines:
        terminalreporter.section("not compared")
        for line in lines:
            terminalreporter.write_line(line)
