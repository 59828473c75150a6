"""Figures that are collected at each scrape."""

from typing import Any

from msgspec.structs import fields, replace
from prometheus_client import CollectorRegistry

from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance
from plimsoll.cluster.pod_groups import Group
from plimsoll.load.summary import LoadSummary
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.rebalancing.runs.statistics import RunFigures
from plimsoll.telemetry.scraped_state import Sources, StateCollector
from plimsoll.testing.builders import a_pod
from plimsoll.toolkit.descheduling.unhealthy_nodes import NodeHealth
from plimsoll.toolkit.scheduling.fair_shares import QueueAccount


def test_each_scrape_tells_the_present_state() -> None:
    depths, calls = {"active": 1}, {"p": {("Fit", "preFilter"): 3}}
    waiting: list[Any] = []
    conditions = [("web", "Ready", True), ("web", "Degraded", False)]
    degraded, stalled = [("web", "NotAllowed"), ("web", "Resting")], {"p": 2, "q": 0}
    figures = RunFigures(
        next_run=300.0,
        due=200.0,
        last_success=100.0,
        in_flight=3,
        imbalance={("cpu", "requests"): 12.5},
        violations={"Tidy": 4},
    )
    runs = {
        "web": figures,
        "new": replace(figures, last_success=None),
        "by-load": replace(figures, hot=0, hot_s=7),
    }
    kept = {"name": "a", "phase": "Blocked", "pods": 3, "reason": "Budget"}
    maintenance = NodeMaintenance.from_wire(
        {
            "metadata": {"name": "kernel"},
            "spec": {"nodes": ["a", "b", "c"]},
            "status": {
                "phase": "Draining",
                "nodes": [kept, {**kept, "name": "b"}, {"name": "c", "phase": "Drained"}],
            },
        }
    )
    registry = CollectorRegistry()
    load = LoadSummary({"measured": 3}, {"cpu": 0.5}, {"cpu": 0.75}, {"cpu": 0.25})
    registry.register(
        StateCollector(
            Sources(
                queues=lambda: depths,
                cache=lambda: {"nodes": 2},
                rejections=lambda: waiting,
                in_flight=lambda: 4,
                calls=lambda: calls,
                events_dropped=lambda: 5,
                tasks=lambda: 6,
                conditions=lambda: conditions,
                degraded=lambda: degraded,
                stalled=lambda: stalled,
                runs=lambda: runs,
                load=lambda: load,
                maintenances=lambda: [maintenance],
                unhealthy=lambda: {
                    "x": NodeHealth({"a": "is"}, (), {"b": "is", "c": "is"}, frozenset("abc"), "")
                },
                prices=lambda: {"EUR": 1.5},
                shares=list,
                groups=list,
            )
        )
    )
    value = registry.get_sample_value

    assert value("plimsoll_load_nodes", {"state": "measured"}) == 3
    assert value("plimsoll_nodes_price_per_hour", {"currency": "EUR"}) == 1.5
    for state, nodes in (("Closed", 1), ("Waiting", 2)):
        assert value("plimsoll_unhealthy_nodes", {"policy": "x", "state": state}) == nodes
    for name, phase in (("maintenances", "Draining"), ("maintenance_nodes", "Drained")):
        assert value(f"plimsoll_{name}", {"phase": phase}) == 1
    assert value("plimsoll_maintenance_kept_pods", {"reason": "Budget"}) == 6
    for figure, share in (("mean", 0.5), ("highest", 0.75), ("spread", 0.25)):
        assert value(f"plimsoll_load_{figure}_ratio", {"resource": "cpu"}) == share
    assert value("plimsoll_scheduler_pending_pods", {"queue": "active"}) == 1
    assert value("plimsoll_scheduler_cache_size", {"type": "nodes"}) == 2
    assert value("plimsoll_scheduler_inflight_bindings") == 4
    assert value("plimsoll_events_dropped_total") == 5
    assert value("plimsoll_event_loop_tasks") == 6
    assert (
        value(
            "plimsoll_scheduler_plugin_evaluation_total",
            {"plugin": "Fit", "extension_point": "PreFilter", "profile": "p"},
        )
        == 3
    )
    assert value("plimsoll_scheduler_unschedulable_pods", {"plugin": "Fit", "profile": "p"}) is None

    assert value("plimsoll_policy_condition", {"policy": "web", "type": "Ready"}) == 1
    assert value("plimsoll_policy_condition", {"policy": "web", "type": "Degraded"}) == 0

    assert value("plimsoll_policy_degraded", {"policy": "web", "reason": "NotAllowed"}) == 1
    assert value("plimsoll_scheduler_stalled_pods", {"profile": "p"}) == 2
    assert value("plimsoll_scheduler_stalled_pods", {"profile": "q"}) == 0
    assert value("plimsoll_load_hot_nodes", {"policy": "by-load"}) == 0
    assert value("plimsoll_load_hot_seconds_total", {"policy": "by-load"}) == 7
    assert value("plimsoll_load_hot_nodes", {"policy": "web"}) is None
    of_web = {
        "next_run_timestamp_seconds": 300,
        "run_due_timestamp_seconds": 200,
        "last_success_timestamp_seconds": 100,
        "moves_in_flight": 3,
    }
    assert {name: value(f"plimsoll_rebalancer_{name}", {"policy": "web"}) for name in of_web} == of_web
    assert value("plimsoll_rebalancer_last_success_timestamp_seconds", {"policy": "new"}) is None
    assert (
        value(
            "plimsoll_rebalancer_imbalance_percentage_points",
            {"policy": "web", "resource": "cpu", "usage": "requests"},
        )
        == 12.5
    )
    assert value("plimsoll_rebalancer_violations", {"policy": "web", "strategy": "Tidy"}) == 4

    depths["active"] = 0
    degraded.clear()
    runs.clear()
    conditions.clear()
    waiting += [("p", {"Fit", "Taints"}), ("p", {"Fit"}), ("q", {"Fit"})]

    assert value("plimsoll_scheduler_pending_pods", {"queue": "active"}) == 0
    assert value("plimsoll_policy_condition", {"policy": "web", "type": "Ready"}) is None
    assert value("plimsoll_policy_degraded", {"policy": "web", "reason": "NotAllowed"}) is None
    assert value("plimsoll_rebalancer_run_due_timestamp_seconds", {"policy": "web"}) is None
    assert value("plimsoll_scheduler_unschedulable_pods", {"plugin": "Fit", "profile": "p"}) == 2
    assert value("plimsoll_scheduler_unschedulable_pods", {"plugin": "Fit", "profile": "q"}) == 1
    assert value("plimsoll_scheduler_unschedulable_pods", {"plugin": "Taints", "profile": "p"}) == 1


def scraped(**sources: Any) -> CollectorRegistry:
    """A registry with these figures, and nothing else."""
    nothing: dict[str, Any] = {each.name: dict for each in fields(Sources)}
    numbers = dict.fromkeys(("in_flight", "events_dropped", "tasks"), int)
    registry = CollectorRegistry()
    registry.register(StateCollector(Sources(**{**nothing, **numbers, "load": lambda: None, **sources})))
    return registry


def test_groups_are_counted_by_phase_and_their_pods_by_state() -> None:
    """A PodGroup without pods is not counted; phases that no group is in are 0."""
    members = {
        "a": a_pod("a", node="n", status={"phase": "Running"}),
        "b": a_pod("b", node="n", status={"phase": "Pending"}),
        "c": a_pod("c"),
    }
    train = convert(PodGroup, {"metadata": {"name": "train"}, "spec": {"minMember": 2}})
    groups = [Group("default/train", train, members, present=3), Group("default/empty", train)]
    value = scraped(groups=lambda: groups).get_sample_value

    for phase, count in (("Scheduled", 1), ("Pending", 0)):
        assert value("plimsoll_scheduler_pod_groups", {"phase": phase}) == count
    for state in ("Waiting", "Bound", "Running"):
        assert value("plimsoll_scheduler_pod_group_members", {"state": state}) == 1


def test_queues_have_a_series_for_each_of_their_eight_first_resources() -> None:
    """In cores; an amount without a value is 0."""
    gpus = {f"gpu-{at}": 2 for at in range(8)}
    account = QueueAccount("a", "", {"cpu": 3500}, {"cpu": 1000}, gpus, {}, {"cpu": 2000}, 0.5)
    registry = scraped(shares=lambda: [("p", account)])

    def of_queue(resource: str, amount: str) -> float | None:
        labels = {"profile": "p", "queue": "a", "resource": resource, "amount": amount}
        return registry.get_sample_value("plimsoll_queue_resources", labels)

    kinds = ("used", "pending", "guaranteed", "deserved", "borrowed")
    assert [of_queue("cpu", kind) for kind in kinds] == [3.5, 1, 0, 2, 1.5]
    assert [of_queue("memory", kind) for kind in kinds] == [0] * 5
    assert [of_queue(f"gpu-{at}", "guaranteed") for at in range(4, 8)] == [2, 2, None, None]
