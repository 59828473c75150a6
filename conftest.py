"""Documentation is executed: python blocks run, policies in yaml blocks are validated. Laws have profiles."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import settings
from sybil import Sybil
from sybil.example import Example
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from forked import Forked

if TYPE_CHECKING:
    from roadstead.processes import Launch

pytest_plugins = (
    "coverage_by_file",
    "event_loops",
    "not_compared",
    "process_reaper",
    "pytester",
    "time_budget",
    "time_limits",
    "costs",
    "workers",
)

# A busy machine is slow, not wrong: the time limit of a whole test is pytest's. The suite tries the same
# examples each time; `make laws` tries new ones, many more of them.
settings.register_profile("suite", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("laws", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("suite")

# What tests read with yaml.safe_load, libyaml reads ten times as fast; the product names its loader itself.
yaml.SafeLoader = yaml.CSafeLoader  # type: ignore[misc, assignment]

# Thousands of tests are collected and none is garbage: looking for some takes a third of the time.
gc.disable()

# The machine trusts no server of these tests; each session would load 140 certificates all the same.
# Go's programs collect their garbage at a limit of memory, which kubectl never reaches.
if not os.environ.get("PLIMSOLL_E2E_KUBECONFIG"):
    os.environ["SSL_CERT_FILE"] = os.devnull
os.environ.setdefault("GOGC", "off")
os.environ.setdefault("GOMEMLIMIT", "256MiB")


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but seldom, and not among modules and collected tests."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 1_000)
    gc.enable()


def validate_policies(example: Example) -> None:
    """A yaml block of our kind must be a valid policy."""
    from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy  # noqa: PLC0415 - dra-cel's suite has none

    for document in yaml.safe_load_all(str(example.parsed)):
        if isinstance(document, dict) and document.get("kind") == "SchedulingPolicy":
            SchedulingPolicy.model_validate(document)


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(),
        CodeBlockParser(language="yaml", evaluator=validate_policies),
    ],
    patterns=["*.md"],
    excludes=["tests/**", ".venv/**"],
).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option that writes the expected files of field cases (tests/cases)."""
    parser.addoption("--update-cases", action="store_true", help="write tests/cases/**/*.expected.yaml")


@pytest.fixture(scope="session")
def launch_roadstead() -> Launch:
    """Start clusters as forks."""

    def launch(arguments: Sequence[str], log: Path) -> Forked:
        return Forked("roadstead", *arguments, output=log)

    return launch


@pytest.fixture
def update_cases(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are written instead of compared."""
    return bool(request.config.getoption("--update-cases"))
