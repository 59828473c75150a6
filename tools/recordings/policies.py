"""DeschedulerPolicies as policies of ours, where a SchedulingPolicy can say the same."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from recordings.descheduler_policy import DeschedulerPolicy


def policy_of(given: DeschedulerPolicy) -> SchedulingPolicy | None:
    """The same as a policy that evicts, without the arguments of its evictor; None where it cannot be said.

    A SchedulingPolicy has one profile, runs a strategy once, and takes only labels to select nodes by.
    Strategies that go by measured usage are left out: a recording has one reading, without its time.
    """
    if len(given.profiles) != 1:
        return None
    (profile,) = given.profiles
    configs: dict[str, Mapping[str, Any]] = {}
    for config in profile.plugin_config:
        configs.setdefault(config.name, config.args)
    names = [*profile.plugins.deschedule.enabled, *profile.plugins.balance.enabled]
    if any(configs[name].get("metricsUtilization") for name in names):
        return None
    rebalancing = {
        "mode": "Enforce",
        "planner": "Upstream",
        "strategies": [{"name": name, "args": configs[name]} for name in names],
        "limits": {
            "total": _amount(given.max_no_of_pods_to_evict_total),
            "perNode": _amount(given.max_no_of_pods_to_evict_per_node),
            "perNamespace": _amount(given.max_no_of_pods_to_evict_per_namespace),
            "perWorkload": "100%",
            "perMinute": "100%",
        },
    }
    pairs = [part.partition("=") for part in given.node_selector.split(",") if part]
    labels = {key: value for key, _, value in pairs}
    scope = {"nodeSelector": {"matchLabels": labels}} if labels else {}
    try:
        return SchedulingPolicy.model_validate(
            {"metadata": {"name": "recorded"}, "spec": {"scope": scope, "rebalancing": rebalancing}}
        )
    except ValidationError:
        return None


def _amount(count: int | None) -> int | str:
    return "100%" if count is None else count
