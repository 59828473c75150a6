"""Reads the installed definitions and what shadows them; a read that fails is a result, too."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from plimsoll.kube.access_reviews import right_of
from plimsoll.kube.lists import objects
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.preflight import definitions
from plimsoll.preflight.findings import Unread

T = TypeVar("T")
Document = Mapping[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def read_definitions(session: Session) -> Mapping[str, Document | Unread | None]:
    """Our CustomResourceDefinitions, keyed by name; None for a missing one."""

    async def one(name: str) -> Document | Unread | None:
        found = await attempt(
            DEFINITIONS, lambda path: all_of(session, path, {"fieldSelector": f"metadata.name={name}"})
        )
        return found if isinstance(found, Unread) else next(iter(found), None)

    names = definitions.names()
    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


async def attempt(path: str, read: Callable[[str], Awaitable[T]]) -> T | Unread:
    """The content of a path, or the failed read."""
    try:
        return await read(path)
    except APIError as exc:
        return unread_of(exc)


def unread_of(exc: APIError) -> Unread:
    """A failed read, with the right that it needs."""
    method, _, path = exc.attempt.partition(" ")
    right, namespace = right_of(method, path)
    return Unread(right, namespace, exc.status, exc.message)


async def all_of(
    session: Session, path: str, selectors: Mapping[str, str] | None = None
) -> Sequence[Document]:
    """All objects of a path."""
    return [each async for each in objects(session, path, selectors)]
