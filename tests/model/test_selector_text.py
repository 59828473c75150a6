"""Label selectors in text form, as kubectl reads them."""

from typing import Any

import pytest

from plimsoll.model.selector_text import parse_selector
from plimsoll.model.selectors import SelectorError


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("  ", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": "1"}, False),
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "1"}, True),
        ("a = 1", {"a": "1"}, True),
        ("a!=1", {"a": "2"}, True),
        ("a!=1", {}, True),
        ("a=", {"a": ""}, True),
        ("a in (1, 2)", {"a": "2"}, True),
        ("a notin (1,2)", {"a": "3"}, True),
        ("a in (1,2),b!=3", {"a": "1", "b": "3"}, False),
        ("a>5", {"a": "6"}, True),
        ("a<5", {"a": "6"}, False),
        ("x.io/a=1,b", {"x.io/a": "1", "b": ""}, True),
        ("in in (in)", {"in": "in"}, True),
        ("a in (,)", {"a": ""}, True),
    ],
)
def test_what_is_selected(text: str, labels: dict[str, Any], matches: bool) -> None:
    """Every operator, with and without blanks."""
    assert parse_selector(text).matches(labels) is matches


@pytest.mark.parametrize(
    "text",
    ["a=b=c", "a in (", "a in 1", "a in (1", "a in (1;2)", "=1", "a b", "a,,b", "!", "a in (1 2)", "a b=1"],
)
def test_what_is_no_selector(text: str) -> None:
    """The sentence quotes the text."""
    with pytest.raises(SelectorError, match=r"selector|Invalid"):
        parse_selector(text)
