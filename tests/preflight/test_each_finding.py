"""Findings over several things: each pod, source, user and level counts, in any order."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.preflight import rights
from plimsoll.preflight.findings import Area, Finding, Level, worst
from plimsoll.preflight.rights import service_account, service_account_of
from plimsoll.preflight.unserved_pods import UnreportedPods, judged_pods
from plimsoll.testing.builders import a_pod

ORDER = [Level.OK, Level.WARNING, Level.ERROR]


@given(st.lists(st.sampled_from(ORDER), max_size=4))
@settings(max_examples=40)
def test_the_worst_of_findings_is_the_last_in_the_order(levels: Any) -> None:
    """OK without any."""
    assert worst(Finding(Area.PODS, level, "s", "m") for level in levels) is max(
        levels, key=ORDER.index, default=Level.OK
    )


@pytest.mark.parametrize(
    ("user", "found"),
    [
        (service_account("a", "b", "t").user, ("a", "b")),
        ("system:serviceaccount:a", ("", "")),
        ("system:serviceaccount:", ("", "")),
        ("jane", ("", "")),
        ("jane:system:serviceaccount:a:b", ("", "")),
        ("system:node:a:b", ("", "")),
        ("", ("", "")),
    ],
)
def test_a_service_account_is_read_from_the_whole_user_name(user: str, found: Any) -> None:
    """A name that contains one, or only half of one, is of another user."""
    assert service_account_of(user) == found


WAITING = {"served": False, "idle": True, "foreign": True, "seen": False, "broken": True}
CLAIMED = {"served": ("p", ""), "broken": ("q", "its profile is invalid")}


@pytest.mark.parametrize("names", list(itertools.permutations(WAITING, 3)))
@pytest.mark.parametrize("leads", [True, False])
def test_each_scheduler_name_is_judged_whatever_comes_before(names: Any, leads: bool) -> None:
    """A name that is served hides none that follows."""
    waiting = UnreportedPods({name: [a_pod(f"{name}-1")] for name in names}, {})
    expected = [name for name in names if WAITING[name] or (name == "served" and not leads)]

    found = list(judged_pods(waiting, CLAIMED, {"seen"}, leads=leads))

    assert len(found) == max(len(expected), 1)
    for name, each in zip(expected, found, strict=False):
        assert f'"{name}"' in f'"{each.subject}" {each.message}' or name in f"{each.subject} {each.message}"
        assert each.level is not Level.OK


@pytest.mark.parametrize(
    "sources", [(), ("KubernetesMetrics",), ("Prometheus",), ("Prometheus", "KubernetesMetrics")]
)
def test_a_policy_measures_if_one_of_its_sources_is_the_metrics_api(sources: Any) -> None:
    """The first or the second."""
    queries = {"node": {"cpu": {"query": "a", "unit": "Cores"}}}
    providers = [
        {
            "source": each,
            **({"prometheus": {"url": "http://p", "queries": queries}} if each == "Prometheus" else {}),
        }
        for each in sources
    ]
    spec = {
        "rebalancing": {
            "mode": "DryRun",
            "strategies": [{"name": "RemoveDuplicates"}],
            "metricsProviders": providers,
        }
    }
    policy = SchedulingPolicy.model_validate({"metadata": {"name": "p"}, "spec": spec})

    assert rights._is_measuring(policy) is ("KubernetesMetrics" in sources)
