"""Data of one scheduling attempt, written by PreFilter and read by Filter and Score.

Keys are types, so a plugin reads back exactly what it wrote::

    state.write(Wanted(ports=...))
    wanted = state.read(Wanted)

A plugin that adjusts its state for simulated pods (``add_pod``, ``remove_pod``) gives the value a
``clone`` method; values without one are shared between clones and must not be changed in place.
"""

from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from msgspec import Struct

from plimsoll.model.heavy_objects import is_heavy
from plimsoll.model.structural import Structural

T = TypeVar("T")


@runtime_checkable
class Cloneable(Protocol, metaclass=Structural):
    """State that simulated pods change."""

    def clone(self) -> Any:
        """An independent copy."""


class CycleState:
    """Stores one value per type, for the duration of one attempt.

    Attributes:
        is_heavy: Whether a value refers to an object so large that no cache may keep it.
    """

    __slots__ = ("_values", "is_heavy")

    def __init__(self) -> None:
        self._values: dict[type, Any] = {}
        self.is_heavy = False

    def write(self, value: object) -> None:
        """Store ``value`` under its type; it replaces an earlier one."""
        self._values[type(value)] = value

    def refer_to(self, *objects: Struct) -> None:
        """Note objects of the cluster, other than the pod, that values refer to."""
        self.is_heavy = self.is_heavy or any(map(is_heavy, objects))

    def drop(self, kind: type[Any]) -> None:
        """Remove the value of type ``kind``, if there is one."""
        self._values.pop(kind, None)

    def read(self, kind: type[T]) -> T:
        """The value of type ``kind``.

        Raises:
            KeyError: None was written; the plugin's PreFilter or PreScore did not run or skipped.
        """
        value: T = self._values[kind]
        return value

    def find(self, kind: type[T]) -> T | None:
        """The value of type ``kind``, or None."""
        value: T | None = self._values.get(kind)
        return value

    def clone(self) -> "CycleState":
        """A copy whose cloneable values are independent."""
        copy = CycleState()
        copy._values = {
            # An isinstance check of the protocol costs thirty times as much, and this runs for every pod.
            kind: cast("Cloneable", value).clone() if hasattr(value, "clone") else value
            for kind, value in self._values.items()
        }
        return copy
