"""Documentation is executed: python blocks run, policies in yaml blocks are validated."""

import yaml
from sybil import Sybil
from sybil.example import Example
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy

pytest_plugins = ("process_reaper", "time_limits", "pytester")


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
