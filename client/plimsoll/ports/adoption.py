"""Port for what adopts pods."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class AdmissionPort(Protocol):
    """Reads admission objects."""

    async def served_version(self) -> str:
        """The version in which the server has MutatingAdmissionPolicy, "" without it."""

    async def read(self, wanted: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
        """The objects with the kinds and names of those wanted; None for one that does not exist."""
