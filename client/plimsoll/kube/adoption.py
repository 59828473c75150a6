"""Reads and writes what adopts pods: admission policies and their bindings."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.adoption.admission_objects import BINDINGS, GROUP, POLICIES, VERSIONS
from plimsoll.kube.session.discovery import offered
from plimsoll.kube.session.errors import NotFound, Unavailable
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome

APPLY_PATCH = "application/apply-patch+yaml"

#: Plurals of the admission objects, by kind.
KINDS = {"MutatingAdmissionPolicy": POLICIES, "MutatingAdmissionPolicyBinding": BINDINGS}

Document = Mapping[str, Any]


class AdmissionObjects:
    """Reads, applies and deletes admission objects on one server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def served_version(self) -> str:
        """The version in which the server has MutatingAdmissionPolicy, "" without it.

        Raises:
            APIError: The server did not respond.
        """
        for version in VERSIONS:
            path = f"/apis/{GROUP}/{version}"
            answer = await offered(self._session, path, (POLICIES, BINDINGS))
            if answer.is_done:
                return version
            if answer.verdict is not WriteOutcome.GONE:
                raise Unavailable(f"GET {path}", message=answer.message)
        return ""

    async def read(self, wanted: Sequence[Document]) -> list[Document | None]:
        """The objects with the kinds and names of those wanted; None for one that does not exist.

        Raises:
            APIError: The server refused the read, or did not respond.
        """
        return list(await asyncio.gather(*(self._read(_path(each)) for each in wanted)))

    async def _read(self, path: str) -> Document | None:
        try:
            return await self._session.object("GET", path)
        except NotFound:
            return None

    async def apply(self, document: Document) -> None:
        """Create an object, or make it as given.

        Raises:
            APIError: The server refused it, or did not respond.
        """
        params = {"fieldManager": "plimsoll", "force": "true"}
        await self._session.request(
            "PATCH", _path(document), document, content_type=APPLY_PATCH, params=params
        )

    async def delete(self, document: Document) -> bool:
        """Delete an object; returns whether it existed.

        Raises:
            APIError: The server refused it, or did not respond.
        """
        try:
            await self._session.request("DELETE", _path(document))
        except NotFound:
            return False
        return True


def _path(document: Document) -> str:
    plural, name = KINDS[document["kind"]], document["metadata"]["name"]
    return f"/apis/{document['apiVersion']}/{plural}/{name}"
