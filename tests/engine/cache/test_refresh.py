"""A refresh that a plugin's error ends leaves nothing behind that a later one takes for renewed."""

from typing import Any

import numpy as np
import pytest

from engine.toys import Binds, Fifo
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    Declares,
    FilterPlugin,
    NoArgs,
    PluginError,
    Reads,
    Registry,
    ResultVersion,
    Status,
    unschedulable,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod


class Avoids(FilterPlugin):
    """Rejects the node ``avoided``, which changes although no node does."""

    name = "Avoids"
    args_model = NoArgs
    declares = Declares(reads=Reads.ROW)
    avoided = ""

    def __init__(self, args: Any) -> None:
        pass

    def result_version(self, template: Any, snapshot: Any) -> ResultVersion:
        return ResultVersion(self.avoided)

    def filter(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        return np.array([node.name == self.avoided for node in snapshot.nodes], dtype=np.int64)

    def refusal(self, code: int, state: Any, pod: Any) -> Status:
        return unschedulable("avoided")


class Fails(FilterPlugin):
    """Raises while ``is_broken``; otherwise accepts every node."""

    name = "Fails"
    args_model = NoArgs
    declares = Declares(reads=Reads.CLUSTER)
    is_broken = False

    def __init__(self, args: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        if self.is_broken:
            raise ValueError("broken")
        return np.zeros(len(snapshot), dtype=np.int64)

    def refusal(self, code: int, state: Any, pod: Any) -> Status:
        return unschedulable("never")


def test_results_after_a_failed_refresh_are_those_of_a_fresh_scheduler() -> None:
    names = ("Fifo", "Avoids", "Fails", "Binds")
    profile = build_profile(
        ProfileConfig("s"),
        Registry([Fifo, Binds, Avoids, Fails]),  # type: ignore[list-item] # a fake has only what is used
        [Enabled(each) for each in names],
    )
    avoids: Any = profile.filter[0]
    fails: Any = profile.filter[1]
    scheduler = ProfileScheduler(profile, a_cluster([a_node("n1"), a_node("n2")]))
    pod = scheduler.cluster.templates.info(a_pod())
    assert scheduler.evaluate(pod).feasible == ("n1", "n2")

    avoids.avoided, fails.is_broken = "n1", True
    with pytest.raises(PluginError):
        scheduler.evaluate(pod)
    fails.is_broken = False

    assert scheduler.evaluate(pod).feasible == ("n2",)
