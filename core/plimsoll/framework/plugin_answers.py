"""Judges what plugins, strategies and evictors raise, and their answers.

Whatever one raises (SystemExit and KeyboardInterrupt too) and whatever it returns of a wrong type or shape is
a PluginError that names it. :mod:`plimsoll.engine.plugin_calls` counts and bounds calls of attempts as well.
"""

import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from plimsoll.framework.errors import CannotJudgeError, PluginError
from plimsoll.framework.extension_points import PreFilterResult
from plimsoll.framework.status import Code, Status
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.shortened import shortened

AnswerT = TypeVar("AnswerT")

#: Characters of an answer that an error shows, and of a traceback: its end.
SHOWN, LONGEST_TRACE = 200, 8_000


def judged(plugin: str, point: str, function: Callable[..., AnswerT], *args: object) -> AnswerT:
    """Call a plugin's function.

    Raises:
        PluginError: Chained to the plugin's own exception.
    """
    try:
        return function(*args)
    except PluginError:
        raise
    except BaseException as exc:
        raise named(plugin, point, exc) from exc


def pre_filter_answer(plugin: str, answer: Status | PreFilterResult) -> Status | PreFilterResult:
    """PreFilter's answer, by that plugin: a Status, or the nodes that it allows; PluginError for others."""
    if isinstance(answer, PreFilterResult):
        nodes: Any = answer.nodes
        if not isinstance(nodes, frozenset | set) or not all(map(_is_text, nodes)):
            raise PluginError(
                plugin, "preFilter", f"returned {shown(answer)}; expected the names of nodes as a frozenset"
            )
        return answer
    return of_kind(answer, Status, plugin, "preFilter").by(plugin)


def of_kind(answer: object, kind: type[AnswerT], plugin: str, point: str) -> AnswerT:
    """A plugin's answer; PluginError if it is of another type, or if it is a Status with wrong parts."""
    if not isinstance(answer, kind):
        raise PluginError(plugin, point, f"returned {shown(answer)}; expected a {kind.__name__}")
    if isinstance(answer, Status):
        code: Any = answer.code
        reasons: Any = answer.reasons
        if not (isinstance(code, Code) and isinstance(reasons, tuple) and all(map(_is_text, reasons))):
            problem = f"returned {shown(answer)}; expected a Code, and a tuple of texts as reasons"
            raise PluginError(plugin, point, problem)
    return answer


def shown(answer: object) -> str:
    """A plugin's answer in an error: short, whatever it is."""
    try:
        text = repr(answer)
    except BaseException as exc:  # noqa: BLE001 - the plugin's class may raise anything here as well
        text = f"a {type(answer).__name__} whose repr raises {type(exc).__name__}"
    return shortened(text, SHOWN)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def named(plugin: str, point: str, raised: BaseException) -> PluginError:
    """The plugin's exception as an error that names the plugin."""
    kind = "" if isinstance(raised, CannotJudgeError) else f"{type(raised).__name__}: "
    try:
        text = str(raised)
    except BaseException:  # noqa: BLE001 - the plugin's class may raise anything here as well
        text = "an exception that cannot be written as text"
    trace = "".join(traceback.format_exception(raised))
    return PluginError(plugin, point, f"{kind}{text}", trace[-LONGEST_TRACE:])


def checked(values: IntArray, length: int, plugin: str, point: str) -> IntArray:
    """The array that a plugin returned; PluginError unless it has one integer per node."""
    if not isinstance(values, np.ndarray):
        raise PluginError(
            plugin, point, f"returned {shown(values)}; expected an array of integers, shape ({length},)"
        )
    if values.shape != (length,) or values.dtype.kind not in "iu":
        raise PluginError(
            plugin, point, f"returned {values.dtype} of shape {values.shape}; expected integers ({length},)"
        )
    return values
