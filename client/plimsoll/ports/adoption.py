"""Ports for what adopts pods."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from plimsoll.ports.writes import WriteResult


class ParameterPort(Protocol):
    """The parameter by which pods are adopted."""

    @property
    def namespace(self) -> str:
        """The operator's namespace."""

    async def is_ours(self) -> bool:
        """Whether this process may write and withdraw it."""

    async def read(self) -> tuple[WriteResult, Mapping[str, str] | None]:
        """Scheduler names by policy; None with DONE when there is no parameter."""

    async def write(self, served: Mapping[str, str]) -> WriteResult:
        """Adopt for these policies, and for no other."""

    async def withdraw(self) -> WriteResult:
        """Adopt no pod any more; GONE when nothing was adopted."""


class AdmissionPort(Protocol):
    """Reads admission objects."""

    async def version(self) -> str:
        """The version in which the server has MutatingAdmissionPolicy, "" without it."""

    async def read(self, wanted: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
        """The objects with the kinds and names of those wanted; None for one that does not exist."""
