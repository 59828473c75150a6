"""Templates of ``-o jsonpath`` print what kubectl prints for them; wrong ones are refused."""

from __future__ import annotations

import pytest

from plimsoll.cli.json_path import rendered
from plimsoll.commands.errors import UserError

DOCUMENT = {
    "kind": "History",
    "moves": [
        {"pod": "shop/a", "phase": "Settled", "load": [{"resource": "cpu"}], "seconds": 1.5},
        {"pod": "shop/b", "phase": "Failed", "load": [], "back": True},
    ],
    "labels": {"plimsoll.dev/policy": "tidy"},
    "none": None,
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.kind}", "History"),
        ("{$.kind}", "History"),
        ("kind: {.kind}, {.kind}", "kind: History, History"),
        ("{.moves[*].pod}", "shop/a shop/b"),
        ("{.moves[0].pod}", "shop/a"),
        ("{.moves[-1].pod}", "shop/b"),
        ("{.moves[7].pod}", ""),
        ("{.missing}", ""),
        ("{.labels['plimsoll.dev/policy']}", "tidy"),
        ("{.labels.*}", "tidy"),
        ("{.moves[0].load}", '[{"resource":"cpu"}]'),
        ("{.moves[*].seconds}", "1.5"),
        ("{.moves[1].back}", "true"),
        ('{.moves[?(@.phase=="Failed")].pod}', "shop/b"),
        ("{.moves[?(@.phase!='Failed')].pod}", "shop/a"),
        ('{range .moves[*]}{.pod}{"\\t"}{.phase}{"\\n"}{end}', "shop/a\tSettled\nshop/b\tFailed\n"),
        ("{range .moves[*]}{range .load[*]}{.resource}{end};{end}", "cpu;;"),
        ("{range .moves[*]}{@.pod} {end}", "shop/a shop/b "),
        ('{"{braces} and \u00e4"}', "{braces} and \u00e4"),
        ("", ""),
    ],
)
def test_templates_are_filled_as_by_kubectl(template: str, expected: str) -> None:
    assert rendered(template, DOCUMENT) == expected


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{.kind", "has no partner"),
        ("kind}", "has no partner"),
        ("{..pod}", "..pod is no field"),
        ("{.moves[0:1]}", "[0:1] is no field"),
        ("{kind}", "kind is no field"),
        ("{range .moves[*]}{.pod}", "has no {end}"),
    ],
)
def test_what_is_not_known_is_an_error_with_the_place(template: str, why: str) -> None:
    with pytest.raises(UserError, match="write it as") as caught:
        rendered(template, DOCUMENT)

    assert why in str(caught.value)
