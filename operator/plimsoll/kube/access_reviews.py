"""Reviews rights of the current token and of callers, and knows the right that a request needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubernetes_asyncio import client

from plimsoll.access.rights import Access, Right
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.typed_client import TypedClient

#: Seconds for one answer: a review at the start must not delay it for long.
TIMEOUT_S = 5.0

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class AccessReviews:
    """Asks the API server's authorizer.

    Args:
        session: Without a fence: a review changes nothing, so a process that does not lead may ask.
    """

    def __init__(self, session: Session) -> None:
        self._reviews = client.AuthorizationV1Api(TypedClient(session))

    async def review(self, right: Right, namespace: str) -> bool | None:
        """Whether a right is granted; None when the server did not say."""
        try:
            return await self.answer(right, namespace)
        except APIError:
            return None

    async def answer(self, right: Right, namespace: str, name: str = "") -> bool | None:
        """Whether a right is granted, for objects of one name where one is given; None when it is not said.

        Raises:
            APIError: The server refused the review, or did not answer.
        """
        spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=_attributes(right, namespace, name))
        answer = await self._reviews.create_self_subject_access_review(
            client.V1SelfSubjectAccessReview(spec=spec), _request_timeout=TIMEOUT_S
        )
        return _allowed(answer.status)


class SubjectReviews:
    """Asks what somebody else may do, which needs the right to create SubjectAccessReviews.

    Args:
        user: Such as ``system:serviceaccount:plimsoll:plimsoll``.
    """

    def __init__(self, session: Session, user: str, groups: Sequence[str]) -> None:
        self._reviews = client.AuthorizationV1Api(TypedClient(session))
        self._user = user
        self._groups = list(groups)

    async def answer(self, right: Right, namespace: str, name: str = "") -> bool | None:
        """As of :class:`AccessReviews`."""
        spec = client.V1SubjectAccessReviewSpec(
            user=self._user, groups=self._groups, resource_attributes=_attributes(right, namespace, name)
        )
        answer = await self._reviews.create_subject_access_review(
            client.V1SubjectAccessReview(spec=spec), _request_timeout=TIMEOUT_S
        )
        return _allowed(answer.status)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose token it is."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()


class CallerReviews:
    """Asks the API server; needs the right to create both reviews.

    Args:
        session: Without a fence: a review changes nothing.
    """

    def __init__(self, session: Session) -> None:
        typed = TypedClient(session)
        self._tokens = client.AuthenticationV1Api(typed)
        self._reviews = client.AuthorizationV1Api(typed)

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        """Whose token it is; None when the API server does not accept it, or not for the audience.

        Args:
            token: As it was shown.
            audience: Whom the token must be meant for; "" means the API server.

        Raises:
            APIError: The server refused the review, or did not answer.
        """
        audiences = [audience] if audience else None
        review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token, audiences=audiences))
        answer = await self._tokens.create_token_review(review, _request_timeout=TIMEOUT_S)
        status: client.V1TokenReviewStatus | None = answer.status  # the client's stub claims that it is there
        if status is None or not status.authenticated or status.user is None:
            return None
        if audience and audience not in (status.audiences or ()):  # a server that does not know audiences
            return None
        user: dict[str, object] = status.user.to_dict()
        groups = user["groups"]
        return Caller(
            str(user["username"] or ""),
            str(user["uid"] or ""),
            tuple(map(str, groups)) if isinstance(groups, list) else (),
        )

    async def may_get(self, caller: Caller, path: str) -> bool:
        """Whether somebody may get a path that is no resource.

        Raises:
            APIError: As above.
        """
        spec = client.V1SubjectAccessReviewSpec(
            user=caller.user,
            uid=caller.uid or None,
            groups=list(caller.groups),
            non_resource_attributes=client.V1NonResourceAttributes(path=path, verb="get"),
        )
        answer = await self._reviews.create_subject_access_review(
            client.V1SubjectAccessReview(spec=spec), _request_timeout=TIMEOUT_S
        )
        status: client.V1SubjectAccessReviewStatus | None = answer.status  # likewise
        return status is not None and bool(status.allowed)


def _attributes(right: Right, namespace: str, name: str) -> client.V1ResourceAttributes:
    resource, _, subresource = right.resource.partition("/")
    return client.V1ResourceAttributes(
        verb=right.verb,
        group=right.group,
        resource=resource,
        subresource=subresource or None,
        namespace=namespace or None,
        name=name or None,
    )


def _allowed(status: client.V1SubjectAccessReviewStatus | None) -> bool | None:
    """What a review says; the client's stub claims that it always has a status."""
    return None if status is None else status.allowed


def right_of(method: str, path: str) -> tuple[Right, str]:
    """The right that a request uses, and in which namespace; "" for none."""
    parts = path.partition("?")[0].strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    verb = _VERBS.get(method) or ("get" if name else "list")
    return Right(verb, group, f"{resource}/{subresource}" if subresource else resource), namespace


def permissions(access: Access) -> Callable[[str, str], str]:
    """Says of a request why it is not sent, "" when it may be; free of charge while nothing is denied."""

    def denial(method: str, path: str) -> str:
        why = "" if access.is_complete else access.denial(*right_of(method, path))
        return f"not sent: {why}" if why else ""

    return denial
