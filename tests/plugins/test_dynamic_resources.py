"""DynamicResources: pods without claims pass, the others are rejected with a reason."""

from plimsoll.engine.attempt import schedule
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    SKIP,
    CycleState,
    Diagnosis,
    Registry,
    Rejections,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.plugins.dynamic_resources import NOT_SERVED, DynamicResources, DynamicResourcesArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance

PLUGIN = DynamicResources(DynamicResourcesArgs())
REJECTIONS = Rejections({}, Status(), Diagnosis(1))


def test_pods_without_claims_are_skipped() -> None:
    """And PostFilter then has nothing to give back, which leaves the rest to preemption."""
    state, pod, snapshot = CycleState(), the_info(a_pod()), a_snapshot(a_node())

    assert PLUGIN.pre_filter(state, pod, snapshot) == SKIP
    assert PLUGIN.post_filter(state, pod, snapshot, REJECTIONS).status == unschedulable(
        "no new claims to deallocate"
    )


def test_pods_with_claims_are_refused_with_a_sentence() -> None:
    """Nothing is allocated here, so nothing is pretended."""
    pod = the_info(a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}]))

    assert PLUGIN.pre_filter(CycleState(), pod, a_snapshot(a_node())) == unresolvable(NOT_SERVED)


def test_the_message_of_a_pod_with_claims_says_so_and_promises_nothing() -> None:
    """No node is emptied for a pod that no emptying helps."""
    registry = Registry(IN_TREE)
    profile = build_profile(
        ProfileConfig("default-scheduler"), registry, [Enabled(name) for name in DEFAULT_PLUGINS]
    )
    cluster = a_cluster([a_node()])
    pod = a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])

    decision = schedule(ProfileScheduler(profile, cluster), cluster.templates.info(pod))

    assert decision.message == (
        f"0/1 nodes are available: {NOT_SERVED}. still not schedulable, preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_a_rejection_ahead_of_its_turn_ends_post_filter() -> None:
    """Upstream fails to find its own state then, and so never preempts."""
    nomination = PLUGIN.post_filter(CycleState(), the_info(a_pod()), a_snapshot(a_node()), REJECTIONS)

    assert nomination.status == error("not found")


class TestFilterConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = PLUGIN


class TestScoreConformance(ScorePluginConformance):
    """The laws every score plugin obeys."""

    plugin = PLUGIN
