"""Plugins are kept, shared and evaluated together as they declare: the default ones, and odd toys."""

from typing import Any, ClassVar

import pytest

from engine.test_incremental import PROFILE
from engine.toys import ALL, Room
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.plugin_reach import capabilities_of, names_no_node, stages_of
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Declares, NoArgs, Nomination, Reads, Registry
from plimsoll.testing.builders import a_pod, the_info

OF_NODES = {
    "DynamicResources",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "VolumeBinding",
    "VolumeZone",
}
OF_ROWS = {"NodePorts", "NodeResourcesFit", "NodeVolumeLimits"}
BY_REQUESTS = ["NodeResourcesFit", "NodeResourcesBalancedAllocation"]
OF_ALL = {"InterPodAffinity", "PodTopologySpread", "VolumeRestrictions"}


class Wide(Room):
    """Reads the whole cluster, and says that only constraints on nodes matter: the wider counts."""

    name: ClassVar = "Wide"
    declares: ClassVar = Declares(reads=Reads.CLUSTER, only_constraints=True, counts_domains=True)


class Single(Room):
    """Reads a pod on its own."""

    name: ClassVar = "Single"
    declares: ClassVar = Declares(reads=Reads.POD)


class Silent:
    """A PostFilter that never nominates."""

    name: ClassVar = "Silent"
    args_model: ClassVar = NoArgs
    names_no_node: ClassVar = True

    def __init__(self, args: Any) -> None:
        self.args = args

    def post_filter(self, state: Any, pod: Any, what_if: Any) -> Any:
        raise AssertionError("not called")


class Loud(Silent):
    """One that may."""

    name: ClassVar = "Loud"
    names_no_node: ClassVar = False


MORE: Any = (Silent, Loud)


def test_default_plugins_by_what_the_engine_may_keep_of_them() -> None:
    found, stages = PROFILE.capabilities, PROFILE.stages

    assert stages.node_filter_names == OF_NODES
    assert {each.name for _, each in stages.row_filter} == OF_ROWS
    assert {each.name for _, each in stages.global_filter} == OF_ALL == stages.global_names
    assert [place for place, _ in stages.node_filter] == [0, 1, 2, 3, 8, 9, 12, 13]
    assert {each.name for each, _ in stages.row_score} == {
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
    }
    assert {each.name for each, _ in stages.global_score} == {"PodTopologySpread", "InterPodAffinity"}
    assert stages.global_score_names == {"PodTopologySpread", "InterPodAffinity"}
    assert stages.node_score_names == {"DynamicResources", "ImageLocality", "NodeAffinity", "TaintToleration"}
    assert [each.name for each in stages.versioned_local] == ["DynamicResources"]
    assert {each.name for each in stages.versioned_global} == OF_ALL
    assert (stages.yielding, stages.individual) == (None, False)
    own = OF_NODES - {"VolumeBinding", "VolumeZone", "NodeDeclaredFeatures"}
    assert set(found.signed) == {*own, "ImageLocality"}
    assert found.linear == OF_NODES | {"NodeResourcesFit"}
    assert found.nonlinear == OF_ALL | {"NodePorts", "NodeVolumeLimits"}
    assert set(found.easing) == OF_ALL | {"NodePorts"}
    assert found.counting == {"NodeResourcesFit", "PodTopologySpread"}
    assert set(found.ruled_filters) == {"NodeResourcesFit"}
    assert list(found.ruled_scores) == BY_REQUESTS
    assert set(found.normalizing) == OF_ALL - {"VolumeRestrictions"} | {
        "DynamicResources",
        "NodeAffinity",
        "TaintToleration",
    }
    assert found.parallel == {"DynamicResources", "VolumeBinding"}
    assert found.by_port == {"DefaultBinder"}
    assert found.binds_by_port
    assert PROFILE.nominates


def test_a_plugin_that_reads_more_than_it_says_is_not_shared() -> None:
    wide, single, room = Wide(None), Single(None), Room(None)
    filters: Any = [room, wide]
    tried: Any = [([room], False), ([room, single], True), ([single], True)]

    found = capabilities_of(filters, filters, filters, ())

    assert found.counting == {"Wide"}
    for more, is_single in tried:
        stages = stages_of((), more, (), more[:1], {each.name: 1 for each in more})
        assert stages.individual is is_single


@pytest.mark.parametrize(
    ("plugins", "nominates"),
    [((), False), (("Silent",), False), (("Loud",), True), (("Silent", "Loud"), True)],
)
def test_a_profile_nominates_if_any_of_its_plugins_may(plugins: tuple[str, ...], nominates: bool) -> None:
    enabled = [Enabled(name) for name in ("Fifo", "Room", "Binds", *plugins)]

    profile = build_profile(ProfileConfig("s"), Registry([*ALL, *MORE]), enabled)

    assert profile.nominates is nominates
    assert [names_no_node(each) for each in profile.post_filter] == [each == "Silent" for each in plugins]


@pytest.mark.parametrize("waiting", [(), (False,), (True,), (True, False), (False, True)])
def test_a_group_awaits_victims_if_any_member_does(waiting: tuple[bool, ...]) -> None:
    """A member whose nomination is kept fits as soon as its victims have left."""
    nominations = [Nomination(node=None if each else "n1") for each in waiting]
    refused = tuple(
        Decision(the_info(a_pod(f"p{at}")), AttemptOutcome.UNSCHEDULABLE, nomination=each)
        for at, each in enumerate(nominations)
    )

    assert GangDecision((), refused, 1).awaits_victims is any(waiting)
