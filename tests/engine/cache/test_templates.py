"""Caches of recurring templates stay, however many unique templates occur in between."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.toys import Binds, Fifo
from plimsoll.engine.cache import templates
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.cache.templates import FEWEST, PROBATION, TemplateCaches, own_bytes
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import PodTemplate
from plimsoll.testing.builders import a_cluster, a_node, a_pod


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster([a_node("n1")])


@pytest.fixture
def caches(cluster: Cluster) -> TemplateCaches:
    profile = build_profile(ProfileConfig("s"), Registry([Fifo, Binds]), [Enabled("Fifo"), Enabled("Binds")])  # type: ignore[list-item] # a fake has only what is used
    return TemplateCaches(profile, cluster)


@pytest.fixture
def template(cluster: Cluster) -> Callable[..., Any]:
    """Makes named templates; the pods are held, so that equal names are one template."""
    held = []

    def make(name: str | int, **spec: Any) -> PodTemplate:
        held.append(cluster.templates.info(a_pod(labels={"shape": str(name)}, **spec)))
        return held[-1].template

    return make


def found(caches: TemplateCaches, template: Any) -> TemplateCache | None:
    """The cache of a template without using it."""
    return caches._kept.get(template) or caches._probation.get(template)


def test_a_cache_is_found_again(caches: TemplateCaches, template: Callable[..., Any]) -> None:
    """Until something else takes its place."""
    cache = caches.use(template("a"))

    assert caches.use(template("a")) is cache
    assert found(caches, template("b")) is None


def test_a_heavy_template_is_dropped_at_the_next_one(
    caches: TemplateCaches, template: Callable[..., Any]
) -> None:
    """And no sooner: pods of one shape come in a row."""
    cache = caches.use(template("heavy"))
    cache.state.is_heavy = True

    assert caches.use(template("heavy")) is cache
    caches.use(template("other"))
    assert caches.use(template("heavy")) is not cache


@pytest.mark.parametrize("is_known", [True, False])
def test_the_cache_of_a_large_template_goes_with_the_next_one(
    caches: TemplateCaches, template: Callable[..., Any], is_known: bool
) -> None:
    """Whether that one has a cache or not; nothing else refers to it."""
    if is_known:
        for _ in range(2):
            caches.use(template("regular"))
    large = template("large", nodeSelector={f"key-{number}": "x" * 63 for number in range(500)})
    assert large.is_heavy
    cache = caches.use(large)
    assert caches.use(large) is cache
    caches.use(template("regular"))

    assert caches.use(large) is not cache


def test_a_template_that_came_twice_outlives_any_number_of_strangers(
    caches: TemplateCaches, template: Callable[..., Any]
) -> None:
    """They only push out each other."""
    regular = caches.use(template("regular"))
    caches.use(template("regular"))
    for number in range(10 * PROBATION):
        caches.use(template(number))

    assert found(caches, template("regular")) is regular
    assert found(caches, template(0)) is None
    assert len(caches._kept) + len(caches._probation) == PROBATION + 1


def test_fifty_templates_in_turn_are_kept_however_many_nodes_there_are(
    caches: TemplateCaches, template: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond 60,000 nodes their columns are larger than the limit; a hundred templates are too many then."""
    monkeypatch.setattr(templates, "CACHE_BYTES", 0)
    monkeypatch.setattr(templates, "own_bytes", lambda _: 0)
    for count, are_kept in ((50, True), (100, False)):
        for _ in range(3):
            for number in range(count):
                caches.use(template(number))
        kept = [found(caches, template(number)) for number in range(count)]
        assert (None not in kept) is are_kept
    assert len(caches._kept) == FEWEST


def test_many_templates_in_turn_are_all_kept_in_the_end(
    caches: TemplateCaches, template: Callable[..., Any]
) -> None:
    """A template that comes back after its probation is kept: they do not chase each other out for ever."""
    names = range(3 * PROBATION)
    for _ in range(2):
        for name in names:
            caches.use(template(name))
    kept = [found(caches, template(name)) for name in names]

    assert None not in kept
    assert [caches.use(template(name)) for name in names] == kept


def test_kept_caches_take_no_more_memory_than_they_may(
    caches: TemplateCaches, template: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was not used for the longest time goes."""
    monkeypatch.setattr(templates, "CACHE_BYTES", 0)
    for number in range(PROBATION + 1):
        caches.use(template(number))
        caches.use(template(number))

    assert found(caches, template(0)) is None
    assert found(caches, template(1)) is not None


def test_caches_of_large_templates_are_fewer(
    caches: TemplateCaches, template: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant's templates of 30 kB each would take gigabytes where nodes are few."""
    small, large = template("a"), template("b", nodeSelector={"k" * 63: "v" * 9_000})
    assert own_bytes(large) > own_bytes(small) + 100_000
    monkeypatch.setattr(templates, "CACHE_BYTES", (PROBATION + 2) * (own_bytes(small) + 200))
    names = range(PROBATION + 2)

    for number in names:
        caches.use(template(number))
        caches.use(template(number))
    fit = [found(caches, template(number)) is not None for number in names]
    caches.use(large)
    caches.use(large)

    assert all(fit)
    assert found(caches, large) is not None
    assert [found(caches, template(number)) is not None for number in names] == [False] * 3 + [True] * 15


def test_a_cache_that_went_wrong_is_made_again(caches: TemplateCaches, template: Callable[..., Any]) -> None:
    """Kept or on probation."""
    cache = caches.use(template("a"))
    caches.drop(template("a"))
    again = caches.use(template("a"))
    caches.use(template("a"))
    caches.drop(template("a"))

    assert found(caches, template("a")) is None
    assert cache is not again
    assert caches._own_bytes == 0
    caches.drop(template("a"))
    assert caches._own_bytes == 0
