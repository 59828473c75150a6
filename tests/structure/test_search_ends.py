"""Each loop and each recursion of the deciding packages that could go on is here, with what ends it.

A plan in a thread cannot be killed, so none may need it. Searches, whose steps could grow faster than their
input, look at a budget or at their time, and a test shows that they end there. In the other loops each turn
uses up a part of the input.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from structure.sources import product

ROOT = Path(__file__).parents[2]
DECIDING = ("planning", "strategies", "toolkit", "engine", "plugins", "devices", "plimsoll_optimal")

#: Iterators without an end.
ENDLESS = {"count", "cycle", "iter", "repeat"}

#: The tests that show that searches end at their budget, by module and function.
SEARCHES = {
    "plimsoll_optimal/move_order.walk_to": "planning/optimal/test_neighbourhoods.py::test_a_walk_ends",
    "plimsoll_optimal/neighbourhoods.NeighbourhoodSearch.run": (
        "planning/optimal/test_neighbourhoods.py::test_neighbourhoods_are_searched_within_the_time"
    ),
    "plimsoll_optimal/neighbourhoods.NeighbourhoodSearch._look": (
        "planning/optimal/test_neighbourhoods.py::test_neighbourhoods_are_searched_within_the_time"
    ),
    "plimsoll_optimal/neighbourhoods._Unfolding._clear": (
        "planning/optimal/test_neighbourhoods.py::test_the_search_for_an_order_ends_with_its_questions"
    ),
    "plimsoll_optimal/neighbourhoods._Unfolding._send": (
        "planning/optimal/test_neighbourhoods.py::test_the_search_for_an_order_ends_with_its_time"
    ),
    "engine/gangs/joint_assignment._search": (
        "engine/gangs/test_topology_domains.py::test_a_joint_search_ends_with_its_patience"
    ),
    "engine/gangs/placement._anywhere": (
        "scheduling/gangs/test_devices.py::test_a_gang_tries_a_bounded_number_of_places"
    ),
    **dict.fromkeys(
        (
            "engine/gangs/composite._placed",
            "engine/gangs/composite._children",
            "engine/gangs/composite._in_order",
        ),
        "engine/gangs/test_composite.py::test_a_search_in_several_orders_ends",
    ),
    **dict.fromkeys(
        (
            "devices/allocator.Search._one",
            "devices/allocator.Search._next_device",
            "devices/allocator.Search._next_of_all",
            "devices/allocator.Search._first_available",
            "devices/allocator.Search._first_usable",
        ),
        "devices/test_allocator.py::test_a_search_without_end_ends",
    ),
}

#: Why the other loops end.
OTHERS = {
    "plimsoll_optimal/planner._first_steps": "each turn leaves half of the moves",
    "plimsoll_optimal/spread_repair.mend_exactly": "each turn leaves half of the moves",
    "engine/gangs/composite.branch_of": "each call is for a group below one, of a tree",
    "engine/gangs/composite._after": "each call is for a group below one, of a tree",
    "plugins/fair_share._path": "each turn adds a queue, up to the most levels",
    "toolkit/scheduling/fair_shares.deserved_in_tree": "each call is for the queues below one, of a tree",
    "devices/shared_claims.together": "each pod is taken once",
    "planning/strategy_run.run_strategy": "the strategy's own candidates end",
    "planning/strategy_run.proposals": "the strategy's own candidates end",
    "planning/upstream/cycle.UpstreamCycle._run": "the strategy's own candidates end",
    "planning/upstream/planner.UpstreamRun.rehearse": "the cycle's own evictions end",
    "strategies/defragment_resource.DefragmentResource.candidates": "each turn moves pods, each of them once",
    "strategies/defragment_resource.DefragmentResource._device_bundles": (
        "each turn moves pods, each of them once, or closes nodes"
    ),
    "strategies/remove_duplicates._Crowds.look": "each owner is examined once",
    "strategies/remove_pods_violating_topology_spread_constraint"
    ".RemovePodsViolatingTopologySpreadConstraint._mending": "each turn moves pods, each of them once",
    "strategies/remove_pods_violating_topology_spread_constraint"
    ".RemovePodsViolatingTopologySpreadConstraint._moved": "each turn takes pods, or leaves out a domain",
    "toolkit/descheduling/fewest_moves.FewestMoves.order": "each turn yields one of the pods",
    "toolkit/descheduling/pod_exchange.PodExchange._leaving": "each turn takes one of the node's pods",
    "toolkit/descheduling/room_search.moves_off": "each turn takes one of the node's pods",
    "devices/device_blocks.DeviceBlocks.if_taken": "each turn takes free devices",
    "toolkit/scheduling/fair_shares._filled": "each turn ends the growth of a queue",
    "engine/cache/refusals.TemplateRefusals._refusals": "each turn takes the nodes that one filter refuses",
    "engine/cache/templates.TemplateCaches._keep": "each turn drops a template",
    "engine/plugin_calls._form_of": "each call goes into a part of a type",
    "engine/nominated_requests._Level.claims": "it calls itself once for each new resource",
    "plugins/default_preemption.PreemptionSearch.leave_protected": "each turn drops a node",
}


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The functions of a module, as ``name`` or ``Class.name``; nested ones belong to the outer one."""
    for each in tree.body:
        if isinstance(each, ast.FunctionDef):
            yield each.name, each
        elif isinstance(each, ast.ClassDef):
            yield from (
                (f"{each.name}.{one.name}", one) for one in each.body if isinstance(one, ast.FunctionDef)
            )


def loops(function: ast.AST) -> bool:
    """Whether it has a loop that does not go over a given collection."""
    return any(
        isinstance(each, ast.While)
        or (
            isinstance(each, ast.For)
            and isinstance(each.iter, ast.Call)
            and isinstance(each.iter.func, ast.Name)
            and each.iter.func.id in ENDLESS
        )
        for each in ast.walk(function)
    )


def called(name: str, function: ast.AST) -> set[str]:
    """The functions of the same module, or methods of the same class, that it calls."""
    owner = name.rpartition(".")[0]
    found = set()
    for each in ast.walk(function):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            found.add(each.func.id)
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and isinstance(each.func.value, ast.Name)
            and each.func.value.id == "self"
        ):
            found.add(f"{owner}.{each.func.attr}")
    return found


def endless(tree: ast.Module) -> set[str]:
    """The functions of a module that could go on: with such loops, or those that call themselves."""
    known = dict(functions(tree))
    calls = {name: called(name, each) & known.keys() for name, each in known.items()}

    def reached(name: str) -> set[str]:
        found: set[str] = set()
        ahead = set(calls[name])
        while ahead:
            found |= ahead
            ahead = {further for each in ahead for further in calls[each]} - found
        return found

    return {name for name, each in known.items() if loops(each) or name in reached(name)}


def test_every_loop_that_could_go_on_is_listed() -> None:
    """But for the language of selectors, which has a budget of its own: its cost limit."""
    found = {
        f"{module.place.removesuffix('.py')}.{name}"
        for module in product()
        if module.place.partition("/")[0] in DECIDING
        for name in endless(module.tree)
    }

    assert found - {*SEARCHES, *OTHERS} == set()
    assert {*SEARCHES, *OTHERS} - found == set()


@pytest.mark.parametrize("test", sorted(set(SEARCHES.values())))
def test_every_search_has_a_test_that_it_ends(test: str) -> None:
    """By its name."""
    path, _, name = test.partition("::")

    assert f"def {name}(" in (ROOT / "tests" / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n  while x: pass", {"f"}),
        ("def f():\n  for a in count(): pass\ndef g():\n  for a in b: pass", {"f"}),
        ("def f(): g()\ndef g(): h()\ndef h(): f()\ndef i(): f()", {"f", "g", "h"}),
        ("class C:\n  def f(self): self.g()\n  def g(self): self.f()\ndef f(): g()", {"C.f", "C.g"}),
        ("class C:\n  def f(self): f()\ndef f(): pass", set()),
        ("def f():\n  def g(): g()\n  return g", set()),
    ],
)
def test_loops_and_recursion_are_found(source: str, found: set[str]) -> None:
    """Also over several functions; a function of the same name elsewhere is another one."""
    assert endless(ast.parse(source)) == found
