"""Counts the resources of a node and of the pods that it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roadstead.schemas.quantities import Amounts


@dataclass(slots=True)
class NodeResources:
    """What a node can allocate, and the resources of its pods by uid, in thousandths."""

    allocatable: Amounts = field(default_factory=dict)
    admitted: dict[str, Amounts] = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)

    def take(self, uid: str, wanted: Amounts) -> None:
        """Allocate a pod's requests; those of its earlier admission are released."""
        self.free(uid)
        self.admitted[uid] = wanted
        for name, amount in wanted.items():
            self.used[name] = self.used.get(name, 0) + amount

    def free(self, uid: str) -> None:
        """Release a pod's requests."""
        for name, amount in self.admitted.pop(uid, {}).items():
            self.used[name] -= amount

    def lacks(self, wanted: Amounts) -> str | None:
        """The first resource that is insufficient."""
        for name, amount in sorted(wanted.items(), key=lambda item: item[0] != "pods"):
            if amount and self.used.get(name, 0) + amount > self.allocatable.get(name, 0):
                return name
        return None
