"""Answers of plugins are of their kind, or the plugin is named."""

from typing import Any

import pytest

from plimsoll.framework import SUCCESS, PluginError, PreFilterResult
from plimsoll.framework.plugin_answers import pre_filter_answer


@pytest.mark.parametrize("nodes", [frozenset(), frozenset({"a"}), {"a", "b"}])
def test_names_of_nodes_are_an_answer_of_pre_filter(nodes: Any) -> None:
    """Of none, of one or of several; a status is another."""
    answer = PreFilterResult(nodes)

    assert pre_filter_answer("P", answer) is answer
    assert pre_filter_answer("P", SUCCESS) == SUCCESS.by("P")


@pytest.mark.parametrize(
    "answer",
    [PreFilterResult(frozenset({"a", 5})), PreFilterResult(["a"]), PreFilterResult(None), None, "a"],  # type: ignore[arg-type] # what a plugin must not return
)
def test_another_answer_of_pre_filter_names_the_plugin(answer: Any) -> None:
    """One name that is no text is enough."""
    with pytest.raises(PluginError, match='PreFilter plugin "P": returned'):
        pre_filter_answer("P", answer)
