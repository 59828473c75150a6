"""Judges policies by themselves, with the code behind the status: no cluster, no plugins of third parties."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.profile import Enabled, build_profile
from plimsoll.framework import Registry
from plimsoll.migration.descheduler_profiles import EVICTOR_CLASSES, STRATEGIES
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.judgement import PolicyChecks
from plimsoll.policies.profiles import profile_config
from plimsoll.rebalancing.runs.config import Registries, rebalancing_of


class _Profiles:
    def check(self, spec: SchedulingSpec) -> tuple[str, object]:
        defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        profile = build_profile(profile_config(spec), Registry(IN_TREE), defaults)
        return profile.queue_sort.name, None


class _Runs:
    def check(self, policy: SchedulingPolicy) -> None:
        registries = Registries(STRATEGIES, EVICTOR_CLASSES)
        rebalancing_of(policy, registries, {}, ClusterObjects(), datetime.fromtimestamp(0, UTC))


CHECKS = PolicyChecks(_Profiles(), _Runs())


def problem_of(document: Mapping[str, Any]) -> str:
    """Why the operator would not accept a policy, "" when it would."""
    return CHECKS.judge(document).sentence
