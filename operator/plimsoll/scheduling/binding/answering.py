"""What plugins answer after the decision: an answer at all, and signed with their name."""

from typing import TypeVar

from plimsoll.framework import Plugin, PluginError, Status, error

T = TypeVar("T")


def an_answer(given: T, kind: type[T]) -> T:
    """What a plugin answered, if it is an answer at all.

    Raises:
        TypeError: It is something else; the caller names the plugin.
    """
    if not isinstance(given, kind):
        raise TypeError(f"it answered {given!r}; expected a {kind.__name__}")
    return given


def signed(status: Status, plugin: Plugin, point: str) -> Status:
    """A plugin's refusal with its name; an error says in words where it came from."""
    if status.is_rejected:
        return status.by(plugin.name)
    return error(str(PluginError(plugin.name, point, status.message))).by(plugin.name)
