"""Columns shared by templates: asked once, until a node changes, and never mixed up."""

from typing import Any

import numpy as np
import pytest

from plimsoll.engine.cache.node_columns import NodeColumns
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    Declares,
    FilterPlugin,
    IntArray,
    NoArgs,
    Reads,
    Registry,
    ScorePlugin,
    unresolvable,
)
from plimsoll.framework.status import Status
from plimsoll.plugins.default_binder import DefaultBinder
from plimsoll.plugins.priority_sort import PrioritySort
from plimsoll.testing.builders import a_cluster, a_node, a_pod


class Picky(FilterPlugin, ScorePlugin):
    """Refuses nodes that the pod's ``not`` label names, and counts how often it is asked."""

    name = "Picky"
    args_model = NoArgs
    declares = Declares(reads=Reads.NODE)

    def __init__(self, args: Any) -> None:
        self.asked: list[Any] = []

    def signature(self, template: Any) -> Any:
        return template.labels.get("not", "")

    def filter(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        self.asked.append(("filter", len(snapshot)))
        return self._refused(pod, snapshot)

    def score(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        self.asked.append(("score", len(snapshot)))
        return 1 - self._refused(pod, snapshot)

    def refusal(self, code: int, state: Any, pod: Any) -> Status:
        return unresolvable("no")

    def _refused(self, pod: Any, snapshot: Any) -> IntArray:
        refused = [node.name == pod.labels.get("not") for node in snapshot.nodes]
        return np.array(refused, dtype=np.int64)


def a_scheduler(*nodes: str) -> Any:
    profile = build_profile(
        ProfileConfig("s"),
        Registry([Picky, PrioritySort, DefaultBinder]),
        [Enabled("PrioritySort"), Enabled("Picky"), Enabled("DefaultBinder")],
    )
    scheduler = ProfileScheduler(profile, a_cluster(a_node(name) for name in nodes))
    return scheduler, profile.filter[0]


def feasible(scheduler: ProfileScheduler, **labels: Any) -> list[str]:
    pod = scheduler.cluster.templates.info(a_pod(labels=labels))
    return sorted(scheduler.evaluate(pod).feasible)


def test_templates_of_one_signature_share_one_evaluation() -> None:
    """Labels that the plugin does not look at make no difference."""
    scheduler, plugin = a_scheduler("n1", "n2", "n3")

    assert feasible(scheduler, app="a", **{"not": "n1"}) == ["n2", "n3"]
    assert feasible(scheduler, app="b", **{"not": "n1"}) == ["n2", "n3"]
    assert feasible(scheduler, app="a", **{"not": "n2"}) == ["n1", "n3"]
    assert feasible(scheduler, app="a") == ["n1", "n2", "n3"]
    assert plugin.asked == [("filter", 3), ("score", 3)] * 3


def test_a_changed_node_is_judged_again_without_harm_to_others() -> None:
    """One template is refreshed in the changed row; another one of the same signature comes later."""
    scheduler, plugin = a_scheduler("n1", "n2")
    assert feasible(scheduler, app="a") == ["n1", "n2"]

    scheduler.cluster.set_node(a_node("n2", labels={"new": "label"}))
    assert feasible(scheduler, app="a") == ["n1", "n2"]
    assert feasible(scheduler, app="b") == ["n1", "n2"]
    scheduler.cluster.remove_node("n1")
    assert feasible(scheduler, app="a") == ["n2"]
    assert feasible(scheduler, app="b") == ["n2"]

    assert ("filter", 1) in plugin.asked


def test_no_plugin_changes_a_column_that_others_share() -> None:
    """A plugin that writes into what it is given raises, and all templates read the same as before."""
    scheduler, _ = a_scheduler("n1", "n2")
    columns = NodeColumns(scheduler.cluster, scheduler.profile)
    built = np.array([1, 2], dtype=np.int64)

    found = columns.column("key", lambda: built)
    built[0] = 9

    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 9
    assert columns.column("key", lambda: built).values.tolist() == [1, 2]
