"""The policies of ``examples/`` are valid, and say what their names promise."""

from pathlib import Path

import pytest
import yaml

from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.api.v1alpha1.rebalancing import Mode

EXAMPLES = Path(__file__).parents[2] / "examples"
FIVE = {
    "LowNodeUtilization",
    "RemoveDuplicates",
    "RemovePodsViolatingNodeTaints",
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingInterPodAntiAffinity",
}


def the_example(name: str) -> SchedulingPolicy:
    """The one policy of an example file."""
    return SchedulingPolicy.from_wire(yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_policy_among_the_examples_is_valid(path: Path) -> None:
    """Each file can be applied as it is, and explains itself first."""
    content = path.read_text(encoding="utf-8")
    policies = [
        SchedulingPolicy.from_wire(document)
        for document in yaml.safe_load_all(content)
        if document["kind"] == "SchedulingPolicy"
    ]

    assert all(policy.metadata.name for policy in policies)
    assert content.startswith("# ")


def test_the_smallest_example_only_schedules() -> None:
    """Nothing is ever moved by it."""
    policy = the_example("scheduler.yaml")

    assert policy.spec.scheduling is not None
    assert policy.spec.scheduling.scheduler_name == "plimsoll"
    assert policy.spec.rebalancing is None


@pytest.mark.parametrize(
    ("name", "mode"), [("rebalance-dry-run.yaml", Mode.DRY_RUN), ("rebalance-enforce.yaml", Mode.ENFORCE)]
)
def test_the_rebalancing_examples_run_the_five_strategies(name: str, mode: Mode) -> None:
    """They differ in what becomes of the plan."""
    rebalancing = the_example(name).spec.rebalancing

    assert rebalancing is not None
    assert rebalancing.mode is mode
    assert {strategy.name for strategy in rebalancing.strategies} == FIVE
