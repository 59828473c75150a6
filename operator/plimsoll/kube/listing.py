"""The policies that exist, asked of the API server itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.kube.patching import POLICIES
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.write_results import answer_of
from plimsoll.ports.writes import WriteOutcome, WriteResult


class PolicyList:
    """Lists policies."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All policies; GONE when the CustomResourceDefinition is not installed."""
        try:
            listed = await self._session.object("GET", POLICIES)
        except APIError as exc:
            return answer_of(exc), ()
        return WriteResult(WriteOutcome.DONE), listed.get("items") or ()
