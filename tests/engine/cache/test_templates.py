"""Caches of recurring templates stay, however many unique templates occur in between."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.toys import Binds, Fifo
from plimsoll.engine.cache import templates
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.cache.templates import PROBATION, TemplateCaches
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import PodTemplate
from plimsoll.testing.builders import a_cluster, a_node, a_pod


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster([a_node("n1")])


@pytest.fixture
def lanes(cluster: Cluster) -> TemplateCaches:
    profile = build_profile(ProfileConfig("s"), Registry([Fifo, Binds]), [Enabled("Fifo"), Enabled("Binds")])  # type: ignore[list-item] # a fake has only what is used
    return TemplateCaches(profile, cluster)


@pytest.fixture
def template(cluster: Cluster) -> Callable[..., Any]:
    """Makes named templates; the pods are held, so that equal names are one template."""
    held = []

    def make(name: str | int) -> PodTemplate:
        held.append(cluster.templates.info(a_pod(labels={"shape": str(name)})))
        return held[-1].template

    return make


def found(lanes: TemplateCaches, template: Any) -> TemplateCache | None:
    """The lane of a template without using it."""
    return lanes._kept.get(template) or lanes._probation.get(template)


def test_a_lane_is_found_again(lanes: TemplateCaches, template: Callable[..., Any]) -> None:
    """Until something else takes its place."""
    lane = lanes.use(template("a"))

    assert lanes.use(template("a")) is lane
    assert found(lanes, template("b")) is None


def test_a_template_that_came_twice_outlives_any_number_of_strangers(
    lanes: TemplateCaches, template: Callable[..., Any]
) -> None:
    """They only push out each other."""
    regular = lanes.use(template("regular"))
    lanes.use(template("regular"))
    for number in range(10 * PROBATION):
        lanes.use(template(number))

    assert found(lanes, template("regular")) is regular
    assert found(lanes, template(0)) is None
    assert len(lanes._kept) + len(lanes._probation) == PROBATION + 1


def test_many_templates_in_turn_are_all_kept_in_the_end(
    lanes: TemplateCaches, template: Callable[..., Any]
) -> None:
    """A template that comes back after its probation is kept: they do not chase each other out for ever."""
    names = range(3 * PROBATION)
    for _ in range(2):
        for name in names:
            lanes.use(template(name))
    kept = [found(lanes, template(name)) for name in names]

    assert None not in kept
    assert [lanes.use(template(name)) for name in names] == kept


def test_kept_lanes_take_no_more_memory_than_they_may(
    lanes: TemplateCaches, template: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was not used for the longest time goes."""
    monkeypatch.setattr(templates, "LANE_BYTES", 0)
    for number in range(PROBATION + 1):
        lanes.use(template(number))
        lanes.use(template(number))

    assert found(lanes, template(0)) is None
    assert found(lanes, template(1)) is not None


def test_a_lane_that_went_wrong_is_made_again(lanes: TemplateCaches, template: Callable[..., Any]) -> None:
    """Kept or on probation."""
    lane = lanes.use(template("a"))
    lanes.drop(template("a"))
    again = lanes.use(template("a"))
    lanes.use(template("a"))
    lanes.drop(template("a"))

    assert found(lanes, template("a")) is None
    assert lane is not again
