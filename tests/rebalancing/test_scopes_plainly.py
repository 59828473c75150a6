"""Compares the pods of scopes, and those that they share, with loops over all pods of all nodes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.kinds.workload import Namespace
from plimsoll.model.selector_text import parse_selector
from plimsoll.model.selectors import EVERYTHING
from plimsoll.planning.scope import PolicyScope
from plimsoll.rebalancing.runs.scope_review import EXAMPLES, Scoped, ScopeReview, review
from plimsoll.testing.builders import a_cluster, a_node, a_pod, put

NAMESPACES = {"shop": {"team": "x"}, "bank": {"team": "y"}, "lost": {}}  #: the last one is not mirrored
LABELS: tuple[dict[str, str], ...] = ({}, {"app": "a"}, {"app": "b"})
SELECTORS = ("", "", "app=a", "app!=a", "app")
Pod = dict[str, Any]


def a_scope(random: Random) -> dict[str, Any]:
    """The fields of a scope, as text."""
    return {
        "include": random.choice(((), (), ("shop",), ("bank", "lost"))),
        "exclude": random.choice(((), (), ("bank",))),
        "team": random.choice(("", "", "team=x", "team!=x")),
        "pods": random.choice(SELECTORS),
        "below": random.choice((None, None, 0, 10)),
        "unknown": random.choice(("", "", "", "gone")),
        "schedulers": random.choice((None, None, frozenset(("ours",)))),
        "nodes": random.choice(("", "", "zone=a", "zone!=a")),
    }


def compiled(name: str, given: dict[str, Any]) -> Scoped:
    """As a policy has it."""

    def selector(text: str) -> Any:
        return parse_selector(text) if text else EVERYTHING

    scope = PolicyScope(
        include=frozenset(given["include"]),
        exclude=frozenset(given["exclude"]),
        namespace_selector=selector(given["team"]),
        pod_selector=selector(given["pods"]),
        priority_threshold=given["below"],
        unknown_class=given["unknown"],
        schedulers=given["schedulers"],
    )
    return Scoped(name, scope, selector(given["nodes"]))


def chosen(text: str, labels: dict[str, str]) -> bool:
    """A selector of one requirement."""
    key, _, value = text.replace("!=", "=").partition("=")
    if "!=" in text:
        return labels.get(key) != value
    return not text or (labels.get(key) == value if value else key in labels)


def has(scope: dict[str, Any], pod: Pod, zone: str) -> bool:
    """Whether a pod on a node of that zone is in a scope."""
    mirrored = pod["namespace"] != "lost"
    return (
        (not scope["include"] or pod["namespace"] in scope["include"])
        and pod["namespace"] not in scope["exclude"]
        and (not scope["team"] or (mirrored and chosen(scope["team"], NAMESPACES[pod["namespace"]])))
        and chosen(scope["pods"], pod["labels"])
        and not scope["unknown"]
        and (scope["below"] is None or pod["priority"] < scope["below"])
        and (scope["schedulers"] is None or pod["scheduler"] in scope["schedulers"])
        and chosen(scope["nodes"], {"zone": zone})
    )


@pytest.mark.parametrize("seed", range(25))
def test_scopes_match_what_loops_find(seed: int) -> None:
    """Of three policies; a stand-in is no pod."""
    random = Random(seed)
    zones = {f"n{number}": random.choice("ab") for number in range(3)}
    pods: list[Pod] = [
        {
            "name": f"p{number}",
            "namespace": random.choice(list(NAMESPACES)),
            "labels": random.choice(LABELS),
            "priority": random.choice((-1, 0, 10)),
            "scheduler": random.choice(("ours", "another")),
            "node": random.choice(list(zones)),
        }
        for number in range(12)
    ]
    objects = [
        a_pod(
            each["name"],
            namespace=each["namespace"],
            labels=each["labels"],
            priority=each["priority"],
            schedulerName=each["scheduler"],
            node=each["node"],
        )
        for each in pods
    ]
    cluster = a_cluster([a_node(name, labels={"zone": zone}) for name, zone in zones.items()], objects)
    for name in ("shop", "bank"):
        put(cluster, convert(Namespace, {"metadata": {"name": name, "labels": NAMESPACES[name]}}))
    of = cluster.templates.info(a_pod("s", labels={"app": "a"}))
    cluster.place(cluster.templates.stand_in(of, Holder(HolderKind.REPLACEMENT, "s"), 10), "n0")
    scopes = {name: a_scope(random) for name in ("mine", "one", "two")}

    found = review(
        compiled("mine", scopes["mine"]),
        [compiled(name, scopes[name]) for name in ("one", "two")],
        cluster,
    )

    mine = [each for each in pods if has(scopes["mine"], each, zones[each["node"]])]
    shared = {
        name: sum(has(scopes[name], each, zones[each["node"]]) for each in mine) for name in ("one", "two")
    }
    both = [
        f"{each['namespace']}/{each['name']}"
        for each in mine
        if any(has(scopes[name], each, zones[each["node"]]) for name in ("one", "two"))
    ]
    assert found == ScopeReview(
        len(mine), {name: count for name, count in shared.items() if count}, found.examples
    )
    assert len(found.examples) == min(EXAMPLES, len(both))
    assert set(found.examples) <= set(both)
