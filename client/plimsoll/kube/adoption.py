"""Reads and writes what adopts pods: admission policies with their bindings, and their parameter."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.access.rights import WITHDRAW
from plimsoll.adoption.admission_objects import BINDINGS, GROUP, PARAMETER, POLICIES, VERSIONS, parameter
from plimsoll.kube.access_reviews import AccessReviews
from plimsoll.kube.session.discovery import offered
from plimsoll.kube.session.errors import APIError, NotFound, Unavailable, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome, WriteResult

APPLY_PATCH = "application/apply-patch+yaml"

#: Plurals of the admission objects, by kind.
KINDS = {"MutatingAdmissionPolicy": POLICIES, "MutatingAdmissionPolicyBinding": BINDINGS}

Document = Mapping[str, Any]


class AdmissionObjects:
    """Reads, applies and deletes admission objects on one server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def version(self) -> str:
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
        await _apply(self._session, _path(document), document)

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


class AdoptionParameter:
    """The ConfigMap with the scheduler names of the policies that are served.

    Applying creates it with rights on this one name: unlike a POST, the request has the name in its path.
    """

    def __init__(self, session: Session, namespace: str) -> None:
        self.namespace = namespace
        self._session = session
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{PARAMETER}"

    async def is_ours(self) -> bool:
        """Whether we may write and withdraw it."""
        try:
            return bool(await AccessReviews(self._session).answer(WITHDRAW, self.namespace, PARAMETER))
        except APIError:
            return False

    async def read(self) -> tuple[WriteResult, Mapping[str, str] | None]:
        """Scheduler names by policy; None with DONE when there is no parameter."""
        try:
            found = await self._session.object("GET", self._path)
        except NotFound:
            return WriteResult(WriteOutcome.DONE), None
        except APIError as exc:
            return answer_of(exc), None
        data = found.get("data")
        return WriteResult(WriteOutcome.DONE), data if isinstance(data, dict) else {}

    async def write(self, served: Mapping[str, str]) -> WriteResult:
        """Adopt for these policies, and for no other."""
        try:
            await _apply(self._session, self._path, parameter(self.namespace, served))
        except APIError as exc:
            return answer_of(exc)
        return WriteResult(WriteOutcome.DONE)

    async def withdraw(self) -> WriteResult:
        """Adopt no pod any more; GONE when nothing was adopted."""
        return await self._session.write("DELETE", self._path)


async def _apply(session: Session, path: str, document: Document) -> None:
    params = {"fieldManager": "plimsoll", "force": "true"}
    await session.request("PATCH", path, document, content_type=APPLY_PATCH, params=params)


def _path(document: Document) -> str:
    plural, name = KINDS[document["kind"]], document["metadata"]["name"]
    return f"/apis/{document['apiVersion']}/{plural}/{name}"
