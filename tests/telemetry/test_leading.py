"""Metrics of leadership."""

import inspect
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from plimsoll.ports.observer import Observer, told_to_all
from plimsoll.telemetry.process import ProcessMetrics


def test_the_gauge_follows_the_election() -> None:
    """1 while leading, 0 while standing by, by the lease's name as in client-go."""
    registry = CollectorRegistry()
    observer = told_to_all([ProcessMetrics(registry)])
    seen = []
    for is_leading in (False, True, False):
        observer.leadership_changed("plimsoll", is_leading=is_leading)
        seen.append(registry.get_sample_value("plimsoll_leader_election_master_status", {"name": "plimsoll"}))

    assert seen == [0, 1, 0]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_every_observer_receives_every_hook(count: int) -> None:
    """In their order; one that overrides nothing is no obstacle."""
    hooks = [name for name, _ in inspect.getmembers(Observer, inspect.isfunction)]
    told: list[tuple[int, str]] = []

    def noting(number: int) -> Observer:
        def hook(name: str) -> Any:
            return lambda *_, **__: told.append((number, name))

        made: Observer = type("Noting", (Observer,), {name: hook(name) for name in hooks})()
        return made

    whole = told_to_all([Observer(), *map(noting, range(count))])
    for name in hooks:
        taken = inspect.signature(getattr(whole, name)).parameters.values()
        given = [
            each.name for each in taken if each.kind is each.POSITIONAL_OR_KEYWORD and each.name != "self"
        ]
        getattr(whole, name)(*given)

    assert told == [(number, name) for name in hooks for number in range(count)]
