"""Figures that are taken when somebody looks."""

from prometheus_client import CollectorRegistry

from plimsoll.telemetry.state import Sources, StateCollector


def test_each_scrape_tells_the_present_state():
    depths, waiting, calls = {"active": 1}, [], {"p": {("Fit", "preFilter"): 3}}
    conditions = [("web", "Ready", True), ("web", "Degraded", False)]
    registry = CollectorRegistry()
    registry.register(
        StateCollector(
            Sources(
                queues=lambda: depths,
                cache=lambda: {"nodes": 2},
                rejections=lambda: waiting,
                in_flight=lambda: 4,
                calls=lambda: calls,
                events_dropped=lambda: 5,
                conditions=lambda: conditions,
            )
        )
    )
    value = registry.get_sample_value

    assert value("plimsoll_scheduler_pending_pods", {"queue": "active"}) == 1
    assert value("plimsoll_scheduler_cache_size", {"type": "nodes"}) == 2
    assert value("plimsoll_scheduler_inflight_bindings") == 4
    assert value("plimsoll_events_dropped_total") == 5
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

    depths["active"] = 0
    conditions.clear()
    waiting += [("p", {"Fit", "Taints"}), ("p", {"Fit"}), ("q", {"Fit"})]

    assert value("plimsoll_scheduler_pending_pods", {"queue": "active"}) == 0
    assert value("plimsoll_policy_condition", {"policy": "web", "type": "Ready"}) is None
    assert value("plimsoll_scheduler_unschedulable_pods", {"plugin": "Fit", "profile": "p"}) == 2
    assert value("plimsoll_scheduler_unschedulable_pods", {"plugin": "Fit", "profile": "q"}) == 1
    assert value("plimsoll_scheduler_unschedulable_pods", {"plugin": "Taints", "profile": "p"}) == 1
