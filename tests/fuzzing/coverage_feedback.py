"""LinesSeen says whether an input led somewhere new: to lines of the product that none has reached before.

Code all of whose lines were seen is not traced any longer, so the feedback costs less the longer it runs.
``sys.settrace`` is enough for that: most of what reads inputs is in C, where no tool for Python looks
either, and of that the kind of the answer tells.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import distributions

_ROOTS = tuple(f"{distributions.ROOT / each}/" for each in distributions.PRODUCT)


class LinesSeen:
    """What inputs have reached so far."""

    def __init__(self) -> None:
        self._unseen: dict[CodeType, set[int]] = {}
        self._answers: set[object] = set()
        self._is_new = False

    @property
    def count(self) -> int:
        """Kinds of answers so far."""
        return len(self._answers)

    def leads_on(self, attempt: Callable[[bytes], object], data: bytes) -> bool:
        """Carry out an attempt; whether it reached a new line or led to a new kind of answer."""
        self._is_new = False
        sys.settrace(self._entered)
        try:
            answer = attempt(data)
        finally:
            sys.settrace(None)
        if answer not in self._answers:
            self._answers.add(answer)
            return True
        return self._is_new

    def _entered(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        unseen = self._unseen.get(code)
        if unseen is None:
            is_ours = code.co_filename.startswith(_ROOTS)
            unseen = self._unseen[code] = (
                {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}
                if is_ours
                else set()
            )
        return self._moved if unseen else None

    def _moved(self, frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
        if event == "line":
            unseen = self._unseen[frame.f_code]
            if frame.f_lineno in unseen:
                unseen.discard(frame.f_lineno)
                self._is_new = True
        return self._moved
