"""Every call of a plugin, strategy or evictor is judged: exceptions and answers."""

import ast
import inspect
from functools import cache

import pytest

from plimsoll.framework import capabilities, extension_points, node_classes, queueing, resource_rules
from plimsoll.framework.descheduling import complaints, context, strategy
from plimsoll.framework.extension_points import NodeTrial, VictimSearch, WhatIf
from plimsoll.toolkit.scheduling import rivalries, topology_spread
from structure.sources import product

#: Modules whose protocols plugins, strategies and evictors implement.
MODULES = (
    capabilities,
    complaints,
    context,
    extension_points,
    node_classes,
    queueing,
    resource_rules,
    rivalries,
    strategy,
    topology_spread,
)
#: Protocols in them that the engine implements.
OURS = (NodeTrial, VictimSearch, WhatIf)

#: Packages of plugins themselves, of other protocols with such names, and of the conformance laws.
ELSEWHERE = ("plugins", "kube", "testing")

#: What else has a method of such a name, by module: its receivers.
OTHERS: dict[str, set[str]] = {
    "app/memory/endpoint.py": {"self.gate"},
    "app/memory/live_page.py": {"self.gate", "response"},
    "commands/parameters.py": {"inspect"},
    "cluster/ingestion.py": {"self.cache"},
    "scheduling/extenders/steps.py": {"extended"},
    "toolkit/scheduling/victims.py": {"what_if"},
    "engine/cache/template.py": {"self._scores"},
    "scheduling/extenders/consultation.py": {"nomination.search"},
    "engine/scheduler.py": {"cache"},
    "framework/descheduling/pod_indexes.py": {"lookup"},
    "inspection/changes/node_drain.py": {"ledger"},
    "inspection/explanations/placed_pod.py": {"builder.ledger"},
    "inspection/explanations/pod_group.py": {"group", "part"},
    "inspection/overview.py": {"state.objects.pending"},
    "inspection/state.py": {"self.objects.pending"},
    "model/columns/pod_counts.py": {"self._lookup", "self._placed"},
    "model/columns/term_counts.py": {"self._lookup"},
    "planning/complaint_comparison.py": {"scope"},
    "plimsoll_optimal/planner.py": {"search"},
    "planning/proven/checks.py": {"plan.ledger", "plan.complaints"},
    "planning/proven/proof.py": {"proofs"},
    "planning/proven/verdicts.py": {"plan.complaints"},
    "rebalancing/runs/upstream_run.py": {"ledger"},
    "scheduling/binding/binder.py": {"self._binder"},
    "scheduling/binding/cycle.py": {"self.binder"},
    "scheduling/devices/device_claims.py": {"self._writer"},
    "scheduling/binding/volume_claims.py": {"self._writer"},
    "scheduling/gangs/attempt.py": {"part", "self._oversight"},
    "scheduling/gangs/oversight.py": {"part", "self.book"},
    "scheduling/queue/queueing_hints.py": {"plugin"},  # called by the queue, which judges
    "strategies/high_node_utilization.py": {
        "self._draining(sources, destinations, context)",
        "self._draining(sources, (), context)",
    },
    "strategies/low_node_utilization.py": {
        "draining",
        "PodExchange(draining, draining.fewest)",
        "self._draining(high, (), over, context)",
    },
    "strategies/remove_pods_violating_inter_pod_anti_affinity.py": {"terms.lookup"},
    "toolkit/descheduling/spread_populations.py": {"known.lookup"},
    "devices/pod_devices.py": {"self._answer(group.answers, row)"},
}


def points() -> set[str]:
    """The methods of these protocols, as the modules have them today."""
    return {
        name
        for module in MODULES
        for each in vars(module).values()
        if getattr(each, "_is_protocol", False) and each.__module__ == module.__name__ and each not in OURS
        for name, member in vars(each).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


POINTS = points()


class Calls(ast.NodeVisitor):
    """The calls of such methods that nothing judges: neither `with calling(...)` nor a handler is around.

    A handler that raises what `named` returns judges; a function that is passed on is not called here.
    """

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self._judged = 0

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        """Look for the context manager."""
        judges = any("calling(" in ast.unparse(each.context_expr) for each in node.items)
        self._judged += judges
        self.generic_visit(node)
        self._judged -= judges

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        """The same."""
        self.visit_With(node)

    def visit_Try(self, node: ast.Try) -> None:
        """Look for the handler."""
        judges = any(
            each.type is not None and ast.unparse(each.type) == "BaseException" for each in node.handlers
        )
        self._judged += judges
        self.generic_visit(node)
        self._judged -= judges

    def visit_Call(self, node: ast.Call) -> None:
        """Look for the method."""
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in POINTS and not self._judged:
            receiver = ast.unparse(function.value)
            if receiver != "self":
                self.found.append((node.lineno, receiver))
        self.generic_visit(node)


def calls(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and receiver of each such call."""
    visitor = Calls()
    visitor.visit(tree)
    return visitor.found


@cache
def found() -> dict[str, list[tuple[int, str]]]:
    """The calls in each module."""
    return {
        module.place: calls(module.tree)
        for module in product()
        if module.place.partition("/")[0] not in ELSEWHERE
    }


def test_no_code_calls_a_plugin_that_nothing_judges() -> None:
    bare = [
        f"{name}:{line}: {receiver}"
        for name, each in found().items()
        for line, receiver in each
        if receiver not in OTHERS.get(name, set())
    ]

    assert bare == []


def test_each_exception_is_still_one() -> None:
    """A receiver that has gone would hide a plugin of the same name."""
    seen = {name: {receiver for _, receiver in each} for name, each in found().items()}

    assert {name: receivers - seen.get(name, set()) for name, receivers in OTHERS.items()} == {
        name: set() for name in OTHERS
    }


@pytest.mark.parametrize(
    "call",
    [
        "plugin.filter(state, pod, snapshot)",
        "each.rivalries(pod, snapshot)",
        "self.evictor.filter(pod, context)",
    ],
)
def test_such_a_call_is_found(call: str) -> None:
    assert calls(ast.parse(call))
    assert not calls(ast.parse(f"with calling(plugin.name, 'filter'):\n    {call}"))


def test_the_points_are_those_of_all_protocols() -> None:
    assert {
        "pre_filter",
        "normalize",
        "result_version",
        "filter_rule",
        "rivalries",
        "candidates",
        "constraints",
    } <= POINTS
