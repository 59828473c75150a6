"""A pod passed over during another's credit is credited later only if it can still replace something."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import PodAdded, PodDeleted
from rebalancing.moves.moved import a_sibling
from rebalancing.moves.test_sightings import Watch, changed


@pytest.mark.parametrize(
    ("state", "is_credited"),
    [
        pytest.param({}, True, id="waits"),
        pytest.param({"node": "good", "phase": "Pending"}, True, id="bound"),
        pytest.param({"node": "good", "phase": "Failed"}, False, id="failed"),
        pytest.param({"node": "good"}, False, id="ready"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, False, id="leaves"),
        pytest.param(None, False, id="gone"),
    ],
)
def test_what_was_passed_over_is_credited_if_it_can_still_become_ready(state: Any, is_credited: bool) -> None:
    """The credited pod goes; the second one is the replacement then, unless it has ended or left."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()
    leaving = a_sibling("web-1", "bad", deletionTimestamp="2026-01-01T00:00:00Z")
    watch.tell(changed(a_sibling("web-1", "bad"), leaving), PodDeleted(leaving))
    first, second = a_sibling("web-2"), a_sibling("web-3")
    watch.tell(PodAdded(first), PodAdded(second))
    if state is None:
        watch.tell(PodDeleted(second))
    elif state:
        watch.tell(changed(second, a_sibling("web-3", **state)))

    told = watch.tell(PodDeleted(first))

    assert told[0] == ("web-1", "Lost", "web-2")
    assert (("web-1", "Seen", "web-3") in told) is is_credited
