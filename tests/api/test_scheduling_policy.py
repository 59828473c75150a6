"""SchedulingPolicy: defaults of small policies, and lossless conversion between wire and model."""

from typing import Any

from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.api.v1alpha1.evictor import ExtraProtection
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec


def a_policy(spec: dict[str, Any]) -> SchedulingPolicy:
    """A policy as an API server would hand it out."""
    return SchedulingPolicy.from_wire(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": "a", "uid": "1", "generation": 1, "managedFields": [{"manager": "kubectl"}]},
            "spec": spec,
        }
    )


def test_an_empty_spec_is_valid_and_harmless() -> None:
    """It serves no scheduler name and moves nothing."""
    policy = a_policy({})

    assert policy.spec.scheduling is None
    assert policy.spec.rebalancing is None
    assert not policy.spec.suspend


def test_a_scheduler_name_is_all_that_scheduling_needs() -> None:
    """The default plugins serve the pods."""
    policy = a_policy({"scheduling": {"schedulerName": "plimsoll"}})

    assert policy.spec.scheduling.scheduler_name == "plimsoll"
    assert policy.spec.scheduling.plugins is None


def test_rebalancing_is_safe_on_arrival() -> None:
    """A dry run, with every ceiling set, a second pod asked for, and stateful pods protected."""
    rebalancing = a_policy({"rebalancing": {}}).spec.rebalancing

    assert rebalancing == RebalancingSpec()
    assert rebalancing.mode is Mode.DRY_RUN
    assert rebalancing.schedule.interval_seconds == 300
    assert (rebalancing.limits.total, rebalancing.limits.per_workload) == (10, 1)
    assert rebalancing.evictor.min_replicas == 2
    assert ExtraProtection.PODS_WITH_PVC in rebalancing.evictor.pod_protections.extra_enabled


def test_args_are_carried_as_they_are() -> None:
    """Only the strategy knows its arguments; nested, null and fractional values arrive untouched."""
    args = {"thresholds": {"cpu": 12.5, "example.com/gpu": 0}, "extra": None, "list": [1, {"a": True}]}

    policy = a_policy({"rebalancing": {"strategies": [{"name": "example.com/Mine", "args": args}]}})

    assert policy.spec.rebalancing.strategies[0].args == args
    assert policy.to_wire()["spec"]["rebalancing"]["strategies"][0]["args"] == args
