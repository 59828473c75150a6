"""roadstead compared with recordings of a real API server (1.36), scenario by scenario.

The recordings and the program that plays them lie next to the checkout; elsewhere the summary says so.
What is known to differ is listed in ``KNOWN_DIFFERENCES.md``, each with its reason.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roadstead.pytest_plugin import StartRoadstead

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
TOOL = SHARED / "tools" / "api_conformance.py"
RECORDINGS = SHARED / "vectors" / "apiserver"
KNOWN = ROOT / "devcluster" / "KNOWN_DIFFERENCES.md"

FAILED = re.compile(r"^FAIL (?P<scenario>\S+) \[(?P<case>.*?)\] ", re.MULTILINE)
LISTED = re.compile(
    r"^- `(?P<scenario>\S+) \[(?P<case>.*?)\]`(?P<sometimes> \(sometimes\))?: \S", re.MULTILINE
)

pytestmark = [
    pytest.mark.slow,  # controllers are given time to do nothing more
    pytest.mark.skipif(
        not TOOL.exists(),
        reason="recorded answers of an API server 1.36 were not compared, for ../shared/vectors/apiserver is "
        "absent; the answers written into devcluster/tests took their place",
    ),
]


def listed(*, sometimes: Any) -> Any:
    """The cases that are listed as different, always or sometimes."""
    found = LISTED.finditer(KNOWN.read_text())
    return {(one["scenario"], one["case"]) for one in found if bool(one["sometimes"]) is sometimes}


def differences(cluster: Any, *selection: Any, jobs: Any) -> Any:
    """The scenarios that were played, the cases that differ, and what the program says of them."""
    command = [sys.executable, str(TOOL), "check", "--kubeconfig", str(cluster.kubeconfig)]
    command += ["--expected", str(RECORDINGS), "--jobs", str(jobs), "--verbose", *selection]
    message = subprocess.run(command, check=False, capture_output=True, text=True)
    assert message.returncode in (0, 1), message.stdout + message.stderr
    failures = [line for line in message.stdout.splitlines() if line.startswith("FAIL")]
    report = "\n".join(failures)
    assert all(map(FAILED.match, failures)), report
    played = set(re.findall(r"^(?:ok  |FAIL) (\S+) \[", message.stdout, re.MULTILINE))
    return played, {(one["scenario"], one["case"]) for one in FAILED.finditer(report)}, report


@pytest.mark.parametrize(
    ("options", "selection", "jobs"),
    [
        pytest.param({}, ("--only", "core", "--skip", "core/bare-*"), 8, id="core"),
        pytest.param({"controllers": False}, ("--only", "core/bare-*"), 2, id="core-bare"),
        pytest.param({}, ("--only", "controllers"), 12, id="controllers"),
        pytest.param(
            {},
            ("--only", "kubectl"),
            1,  # scenarios define a kind of the same name
            id="kubectl",
            marks=pytest.mark.skipif(
                not shutil.which("kubectl"),
                reason="recorded runs of kubectl were not compared, for kubectl is not installed; "
                "the requests that it sends are among the other recordings",
            ),
        ),
    ],
)
def test_answers_as_recorded(
    start_roadstead: StartRoadstead, options: Any, selection: Any, jobs: Any
) -> None:
    """The exchanges that differ are exactly those that are listed with a reason."""
    cluster = start_roadstead(**options)

    played, found, report = differences(cluster, *selection, jobs=jobs)

    assert played
    expected = {one for one in listed(sometimes=False) if one[0] in played}
    assert found - listed(sometimes=True) == expected, report


def test_every_known_difference_is_of_a_recording() -> None:
    """The list names no scenario that is not recorded."""
    for scenario, _ in listed(sometimes=False) | listed(sometimes=True):
        assert list(RECORDINGS.glob(f"{scenario}.json*")), scenario
