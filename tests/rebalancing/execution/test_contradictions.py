"""A record is contradicted by each field alone, and by times beyond the skew of clocks."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.model.columns.cluster import Cluster
from plimsoll.rebalancing.records.contradictions import contradiction
from plimsoll.rebalancing.records.sent_times import SKEW_S
from plimsoll.records.record import Record
from plimsoll.testing.builders import a_pod
from rebalancing.moves.moved import a_spec

NOW = 1_750_000_000.0
NAME = "web-1-0123456789"


def a_record(*times: float, name: str = NAME, created: float = NOW, **spec: Any) -> Record:
    """A record whose phases were reached at these moments."""
    phases = zip(("Planned", "Evicting"), times, strict=False)
    transitions = [{"phase": phase, "time": datetime.fromtimestamp(each, UTC)} for phase, each in phases]
    status = EvictionStatus.model_validate({"phase": "Evicting", "transitions": transitions})
    return Record("default", name, a_spec("web-1", **spec), status, created)


@pytest.mark.parametrize(
    ("times", "created", "is_contradicted"),
    [
        pytest.param((NOW,), NOW, False, id="now"),
        pytest.param((NOW + SKEW_S,), NOW, False, id="as-late-as-a-clock-may-be"),
        pytest.param((NOW + SKEW_S + 1,), NOW, True, id="later"),
        pytest.param((NOW, NOW + SKEW_S + 1), NOW, True, id="the-second-is-later"),
        pytest.param((NOW + SKEW_S + 1, NOW), NOW, True, id="the-first-is-later"),
        pytest.param((NOW + SKEW_S,), NOW - 9e5, False, id="an-old-record"),
        pytest.param((NOW + 2 * SKEW_S,), NOW + SKEW_S, False, id="by-the-clock-of-the-server"),
        pytest.param((NOW + 2 * SKEW_S + 1,), NOW + SKEW_S, True, id="later-by-that-clock-too"),
    ],
)
def test_times_may_be_as_far_ahead_as_clocks_differ(
    times: Any, created: float, is_contradicted: bool
) -> None:
    """Of the later of this clock and that of the API server."""
    found = contradiction(a_record(*times, created=created), lambda _: None, NOW)

    assert found == ("it says that a phase is reached in the future" if is_contradicted else "")


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        pytest.param(None, "", id="gone"),
        pytest.param({"node": "bad"}, "", id="on-its-node"),
        pytest.param({"node": ""}, "", id="without-a-node"),
        pytest.param({"node": "good"}, "its pod is on node good, and not on bad", id="on-another-node"),
        pytest.param({"name": "web-2"}, "the uid of its pod is that of pod default/web-2", id="another-name"),
        pytest.param({"namespace": "b"}, "the uid of its pod is that of pod b/web-1", id="another-namespace"),
    ],
)
def test_the_pod_of_the_uid_is_the_one_that_is_named(pod: Any, found: str) -> None:
    """Its name, its namespace and its node agree."""
    templates = Cluster().templates
    given = None if pod is None else templates.info(a_pod(**{"name": "web-1", "node": "bad", **pod}))

    assert contradiction(a_record(NOW), lambda _: given, NOW) == found
