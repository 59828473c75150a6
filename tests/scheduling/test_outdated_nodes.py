"""Nodes are listed again where their kubelets refuse what fits by our picture of them, and not too often."""

from typing import Any, cast

import pytest

from plimsoll.cluster.watch_events import PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.scheduling.outdated_nodes import PAUSE_S, OutdatedNodes
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock


class Stage:
    def __init__(self) -> None:
        served = ServedProfiles()
        served.replace({"s": cast("Any", None)})
        self.clock, self.lists = FakeClock(), 0
        self.outdated = OutdatedNodes(served, self.clock, self._list)

    def _list(self) -> None:
        self.lists += 1

    def refused(
        self, node: str = "n1", reason: str = "OutOfcpu", scheduler: str = "s", times: int = 1
    ) -> None:
        before, after = pod("Pending", "", node, scheduler), pod("Failed", reason, node, scheduler)
        for _ in range(times):
            self.outdated.observe(PodUpdated(before, after))
            self.outdated.observe(PodUpdated(after, after))


def pod(phase: str, reason: str, node: str, scheduler: str) -> Pod:
    return a_pod("p", node=node, schedulerName=scheduler, status={"phase": phase, "reason": reason})


@pytest.mark.parametrize("reason", ["OutOfcpu", "OutOfpods", "NodeAffinity", "TaintToleration"])
def test_two_refusals_of_one_kubelet_are_a_reason_to_list_nodes(reason: str) -> None:
    """One may be the work of another scheduler that was faster."""
    stage = Stage()
    stage.refused(reason=reason)
    stage.refused("n2", reason=reason)
    assert stage.lists == 0

    stage.refused(reason=reason)

    assert stage.lists == 1


def test_a_loop_of_refusals_costs_one_list_in_half_a_minute() -> None:
    """Nothing that was refused while a list was under way counts afterwards."""
    stage = Stage()
    stage.refused(times=100)
    assert stage.lists == 1

    stage.clock.time += PAUSE_S - 1
    stage.refused(times=100)
    assert stage.lists == 1

    stage.clock.time += 1
    stage.refused()
    assert stage.lists == 1
    stage.refused()
    assert stage.lists == 2


def test_refusals_now_and_then_are_no_reason() -> None:
    """Two schedulers that share nodes have them all day."""
    stage = Stage()
    for _ in range(10):
        stage.refused()
        stage.clock.time += PAUSE_S + 1

    assert stage.lists == 0


@pytest.mark.parametrize(
    "refusal", [{"reason": "UnexpectedAdmissionError"}, {"reason": "Evicted"}, {"scheduler": "other"}]
)
def test_what_a_node_cannot_explain_is_no_reason(refusal: dict[str, str]) -> None:
    """Devices that fail, and pods that another scheduler has placed."""
    stage = Stage()
    stage.refused(times=10, **cast("Any", refusal))

    assert stage.lists == 0
