"""A record is contradicted by each field alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction import EvictionStatus, Replacement
from plimsoll.model.columns.cluster import Cluster
from plimsoll.rebalancing.records.contradictions import contradiction
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

    assert contradiction(a_record(NOW), lambda _: given) == found


@pytest.mark.parametrize(
    ("namespace", "found"),
    [
        pytest.param("default", "", id="its-own-namespace"),
        pytest.param("b", "its replacement is pod b/web-2, in another namespace", id="another-namespace"),
    ],
)
def test_the_replacement_is_a_pod_of_the_namespace(namespace: str, found: str) -> None:
    """A uid may be written that belongs to somebody else."""
    replacement = Cluster().templates.info(a_pod("web-2", namespace=namespace, node="good"))
    given = a_record(NOW)
    landed = {"name": "web-2", "uid": replacement.uid}
    status = given.status.model_copy(update={"replacement": Replacement.model_validate(landed)})

    said = contradiction(
        replace(given, status=status), lambda uid: replacement if uid == replacement.uid else None
    )

    assert said == found
