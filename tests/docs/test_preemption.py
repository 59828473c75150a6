"""docs/preemption.md says what the code does."""

from pathlib import Path

import yaml

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.plugins.default_preemption import PROTECTED

PAGE = (Path(__file__).parents[2] / "docs" / "preemption.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return [part.partition("```")[0] for part in PAGE.split(f"```{language}\n")[1:]]


def test_its_policy_is_one() -> None:
    """As applied; nothing else in it is needed."""
    documents = [yaml.safe_load(block) for block in blocks("yaml")]
    (policy,) = [each for each in documents if each["kind"] == "SchedulingPolicy"]

    assert SchedulingPolicy.model_validate(policy).spec.scheduling.preemption.via_eviction


def test_its_message_is_the_plugins() -> None:
    """Word for word."""
    (message,) = blocks("text")

    assert f"3 {PROTECTED.message}." in message
