"""The development cluster against recordings of a real API server (1.36), scenario by scenario.

The recordings and the program that plays them lie beside the checkout; elsewhere these tests are skipped.
What is known to differ is listed in ``known_differences.md``, each with its reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
TOOL = SHARED / "tools" / "api_conformance.py"
RECORDINGS = SHARED / "vectors" / "apiserver"
KNOWN = Path(__file__).with_name("known_differences.md")

FAILED = re.compile(r"^FAIL (?P<scenario>\S+) \[(?P<case>.*?)\] ", re.MULTILINE)
LISTED = re.compile(r"^- `(?P<scenario>\S+) \[(?P<case>.*?)\]`: \S", re.MULTILINE)

pytestmark = [
    pytest.mark.slow,  # controllers are given time to do nothing more
    pytest.mark.timeout(280),
    pytest.mark.skipif(not TOOL.exists(), reason="recordings not beside the checkout"),
]


def known_differences(prefix):
    """The listed cases of a set."""
    found = {(one["scenario"], one["case"]) for one in LISTED.finditer(KNOWN.read_text())}
    return {(scenario, case) for scenario, case in found if scenario.startswith(prefix)}


def differences(cluster, *selection, jobs):
    """The cases that differ, and the last line of the report."""
    command = [sys.executable, str(TOOL), "check", "--kubeconfig", str(cluster.kubeconfig)]
    command += ["--expected", str(RECORDINGS), "--jobs", str(jobs), *selection]
    told = subprocess.run(command, check=False, capture_output=True, text=True)
    assert told.returncode in (0, 1), told.stdout + told.stderr
    report = told.stdout
    unnamed = [line for line in report.splitlines() if line.startswith("FAIL") and not FAILED.match(line)]
    assert not unnamed, report
    return {(one["scenario"], one["case"]) for one in FAILED.finditer(report)}, report


@pytest.mark.parametrize(
    ("options", "selection", "prefix", "jobs"),
    [
        pytest.param((), ("--only", "controllers"), "controllers/", 12, id="controllers"),
    ],
)
def test_answers_as_recorded(start_devcluster, options, selection, prefix, jobs):
    """The exchanges that differ are exactly those that are listed with a reason."""
    cluster = start_devcluster(*options)

    found, report = differences(cluster, *selection, jobs=jobs)

    assert found == known_differences(prefix), report
