"""Documentation is executed: python blocks run, policies in yaml blocks are validated."""

import pytest
import yaml
from sybil import Sybil
from sybil.example import Example
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy

pytest_plugins = ("not_compared", "process_reaper", "pytester", "time_budget", "time_limits")


def validate_policies(example: Example) -> None:
    """A yaml block of our kind must be a valid policy."""
    for document in yaml.safe_load_all(example.parsed):
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


@pytest.fixture
def update_cases(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are written instead of compared."""
    return bool(request.config.getoption("--update-cases"))
