"""docs/queueing.md says what the plugins declare."""

from pathlib import Path
from typing import Any

from pages.queueing_hints import page, rows
from plimsoll.framework import NoArgs
from plimsoll.plugins import IN_TREE
from plimsoll.scheduling.queue.queueing_hints import can_reject

PAGE = Path(__file__).parents[2] / "docs" / "queueing.md"


class Silent:
    """Rejects pods and says nothing of what may help."""

    name = "Silent"
    args_model = NoArgs

    def __init__(self, args: Any) -> None:
        """Take no arguments."""

    def pre_enqueue(self, pod: Any) -> None:
        """Never called."""


def test_the_page_is_what_the_plugins_say() -> None:
    """After a change of a declaration: make docs."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_plugin_that_rejects_pods_is_on_it() -> None:
    """And no other."""
    rejecting = {plugin.name for plugin in IN_TREE if can_reject(plugin)}  # type: ignore[arg-type] # a fake has only what is used

    named = {line.split("|")[1].strip() for line in page().splitlines() if line.count("|") == 4}

    declaring = {plugin.name for plugin in IN_TREE if hasattr(plugin, "events_to_register")}
    assert rejecting <= named
    assert not named & ({plugin.name for plugin in IN_TREE} - rejecting - declaring)


def test_a_plugin_that_declares_nothing_is_said_to_wake_at_everything() -> None:
    """That is what happens."""
    assert rows(Silent) == [("every event", "always")]  # type: ignore[arg-type] # a fake has only what is used
