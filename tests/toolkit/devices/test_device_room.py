"""The fewest pods that are enough are found without trying sets that are known to be too small."""

from collections.abc import Sequence

from plimsoll.devices.device_room import fewest
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_pod

PODS = [Cluster().templates.info(a_pod(name)) for name in "abcd"]


def test_small_sets_are_not_tried() -> None:
    """Three are needed at least: all four are asked about, then sets of three."""
    tried: list[int] = []

    def is_enough(some: Sequence[PodInfo]) -> bool:
        tried.append(len(some))
        return len(some) >= 3 and PODS[3] in some

    assert fewest(PODS, is_enough, most=4, least=3) == (PODS[0], PODS[1], PODS[3])
    assert tried == [4, 3, 3]


def test_nothing_is_tried_where_too_many_would_have_to_leave() -> None:
    """More than may, or more than there are."""
    assert fewest(PODS, lambda some: len(some) > 2, most=2, least=3) == ()
    assert fewest(PODS, lambda _: False, most=9, least=9) == ()
