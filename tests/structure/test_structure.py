"""The structure of the product: unique names, no circles, no drawers, no probing.

What a measure means is in :mod:`structure.measures`. Sizes are figures that people judge, and fail nothing:
``make figures``.
"""

import ast
from collections.abc import Callable
from typing import Any

import pytest

from structure import measures
from structure.imports import circles_of, graph_of
from structure.sources import Module, distributions, product


def a_module(name: str, source: str = "", lines: int = 1, *, package: bool = False) -> Module:
    """A module of a made-up product."""
    return Module(name, package, lines, ast.parse(source))


def judged(measure: Any, offenders: list[str]) -> None:
    """Nothing offends."""
    assert sorted(set(offenders)) == [], f"offenders of {measure}"


def test_a_public_class_name_means_one_thing() -> None:
    """In each distribution."""
    judged(
        "doubled_classes", [name for modules in distributions() for name in measures.doubled_classes(modules)]
    )


def test_no_modules_import_one_another() -> None:
    """Not for type checking either."""
    judged("circles", [name for modules in distributions() for name in measures.circles(modules)])


def test_no_module_is_a_drawer() -> None:
    """Neither utils nor helpers."""
    judged("drawers", measures.drawers(product()))


def test_capabilities_are_declared() -> None:
    """A protocol says what a plugin can do; its attributes are not probed."""
    judged("probes", measures.probes(product()))


def test_callbacks_are_handed_to_constructors() -> None:
    """None is set on an object that exists."""
    judged("late_callbacks", measures.late_callbacks(product()))


@pytest.mark.parametrize(
    ("measure", "modules", "offenders"),
    [
        pytest.param(
            measures.doubled_classes,
            [a_module("p.a", "class Node: ..."), a_module("p.b", "class Node: ...\nclass _Own: ...")],
            ["Node"],
            id="doubled-class",
        ),
        pytest.param(measures.drawers, [a_module("p.utils"), a_module("p.plan")], ["p.utils"], id="drawer"),
        pytest.param(
            measures.probes,
            [a_module("p.a", "getattr(x, 'eased', None)\ngetattr(x, y)")],
            ["p.a:eased"],
            id="probe",
        ),
        pytest.param(
            measures.late_callbacks,
            [
                a_module("p.a", "class A:\n  def __init__(self): self.tell: Callable[[], None] = print"),
                a_module("p.b", "x, a.tell = b\na.other = b\nself.tell = b"),
            ],
            ["p.b:tell"],
            id="late-callback",
        ),
        pytest.param(
            measures.circles,
            [a_module("p.a", "if TYPE_CHECKING:\n  from p import b"), a_module("p.b", "from p.a import A")],
            ["p.a", "p.b"],
            id="circle",
        ),
    ],
)
def test_offenders_are_found(
    measure: Callable[..., Any], modules: list[Module], offenders: list[str]
) -> None:
    """Each measure finds what it is there for."""
    assert sorted(measure(modules)) == offenders


def test_relative_imports_are_followed() -> None:
    """From a module and from a package."""
    modules = [
        a_module("p", package=True),
        a_module("p.a", "from . import b"),
        a_module("p.b", "from .a import x"),
        a_module("p.c", "from .a import x"),
    ]

    assert circles_of(graph_of(modules)) == [frozenset({"p.a", "p.b"})]
