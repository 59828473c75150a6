"""Reviews the rights of the current token and of callers, and maps requests to the rights that they use."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from plimsoll.access.rights import Access, Right
from plimsoll.kube.session.errors import APIError, Unavailable
from plimsoll.kube.session.session import Session

#: Timeout of one review in seconds: a review at start-up must not delay the start for long.
TIMEOUT_S = 5.0

_AUTHORIZATION, _AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"

T = TypeVar("T")

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class _Access(Struct):
    allowed: bool


class _User(Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None


class _Token(Struct):
    authenticated: bool = False
    user: _User | None = None
    audiences: tuple[str, ...] | None = None


class AccessReviews:
    """Reviews the rights of the operator's own token.

    Args:
        session: A session without a fence: a review changes nothing, so a process that does not lead may
            review.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    async def review(self, right: Right, namespace: str) -> bool | None:
        """Whether a right is granted; None when the server did not respond."""
        try:
            return await self.answer(right, namespace)
        except APIError:
            return None

    async def answer(self, right: Right, namespace: str, name: str = "") -> bool | None:
        """Whether a right is granted, for one object if ``name`` is given; None when the review does not say.

        Raises:
            APIError: The server refused the review, or did not respond.
        """
        spec = {"resourceAttributes": _attributes(right, namespace, name)}
        return await _access(self._session, "selfsubjectaccessreviews", spec)


class SubjectReviews:
    """Reviews the rights of another user; requires the right to create SubjectAccessReviews.

    Args:
        user: The user name, such as ``system:serviceaccount:plimsoll:plimsoll``.
    """

    def __init__(self, session: Session, user: str, groups: Sequence[str]) -> None:
        self._session = session
        self._user = user
        self._groups = list(groups)

    async def answer(self, right: Right, namespace: str, name: str = "") -> bool | None:
        """The same as :meth:`AccessReviews.answer`, for the user."""
        attributes = _attributes(right, namespace, name)
        spec = {"user": self._user, "groups": self._groups, "resourceAttributes": attributes}
        return await _access(self._session, "subjectaccessreviews", spec)


class Caller(Struct, frozen=True):
    """The user to whom a token belongs."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()


class CallerReviews:
    """Authenticates callers and reviews their rights; requires the right to create both reviews.

    Args:
        session: A session without a fence: a review changes nothing.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        """The user of a token; None when the API server rejects it, or it is not for the audience.

        Args:
            token: The token as the caller sent it.
            audience: The audience that the token must have; "" for the API server.

        Raises:
            APIError: The server refused the review, or did not respond.
        """
        spec = {"token": token, **({"audiences": [audience]} if audience else {})}
        status = await _status(self._session, f"{_AUTHENTICATION}/tokenreviews", spec, _Token)
        if status is None or not status.authenticated or status.user is None:
            return None
        if audience and audience not in (status.audiences or ()):  # the server does not support audiences
            return None
        return Caller(status.user.username, status.user.uid, status.user.groups or ())

    async def may_get(self, caller: Caller, path: str) -> bool:
        """Whether a caller may get a non-resource path.

        Raises:
            APIError: The server refused the review, or did not respond.
        """
        spec = {
            "user": caller.user,
            "uid": caller.uid,
            "groups": caller.groups,
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        return bool(await _access(self._session, "subjectaccessreviews", spec))


async def _access(session: Session, resource: str, spec: Mapping[str, Any]) -> bool | None:
    """The result of an access review; None when the answer has none."""
    status = await _status(session, f"{_AUTHORIZATION}/{resource}", spec, _Access)
    return None if status is None else status.allowed


async def _status(session: Session, path: str, spec: Mapping[str, Any], kind: type[T]) -> T | None:
    """The status of a review; None when the answer has none.

    Raises:
        APIError: The server refused the review, or did not respond with a review.
    """
    answer = await session.object("POST", path, {"spec": spec}, timeout_s=TIMEOUT_S)
    try:
        return msgspec.convert(answer.get("status"), kind | None)
    except msgspec.ValidationError as exc:
        raise Unavailable(f"POST {path}", message=f"the answer cannot be read: {exc}") from exc


def _attributes(right: Right, namespace: str, name: str) -> Mapping[str, str]:
    """The object of a review in the API's form, without empty parts."""
    resource, _, subresource = right.resource.partition("/")
    found = {
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    return {"verb": right.verb, "group": right.group} | {key: each for key, each in found.items() if each}


def right_of(method: str, path: str) -> tuple[Right, str]:
    """The right that a request uses, and its namespace; "" for none."""
    parts = path.partition("?")[0].strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    verb = _VERBS.get(method) or ("get" if name else "list")
    return Right(verb, group, f"{resource}/{subresource}" if subresource else resource), namespace


def permissions(access: Access) -> Callable[[str, str], str]:
    """A function that gives the reason why a request is not sent, "" if it may be sent.

    It costs next to nothing while no right is denied.
    """

    def denial(method: str, path: str) -> str:
        why = "" if access.is_complete else access.denial(*right_of(method, path))
        return f"not sent: {why}" if why else ""

    return denial
