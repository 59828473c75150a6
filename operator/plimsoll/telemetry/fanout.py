"""One observer that tells several; one that fails is not told of to the others' cost."""

import functools
import inspect
from collections.abc import Sequence
from typing import Any

from plimsoll.ports.observer import Observer


def told_to_all(observers: Sequence[Observer]) -> Observer:
    """An observer that passes every hook on, in order."""

    class _Fanout(Observer):
        pass

    def passing(name: str) -> Any:
        hooks = [
            getattr(observer, name)
            for observer in observers
            if getattr(type(observer), name) is not getattr(Observer, name)
        ]

        @functools.wraps(getattr(Observer, name))
        def hook(_: Observer, *args: Any, **named: Any) -> None:
            for each in hooks:
                each(*args, **named)

        return hook

    for name, _ in inspect.getmembers(Observer, inspect.isfunction):
        if not name.startswith("_"):
            setattr(_Fanout, name, passing(name))
    return _Fanout()
