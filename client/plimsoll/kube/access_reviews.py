"""Reviews the rights of the current token and of callers, and maps requests to the rights that they use."""

from collections.abc import Callable, Sequence

from kubernetes_asyncio import client
from msgspec import Struct

from plimsoll.access.rights import Access, Right
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.typed_client import TypedClient

#: Timeout of one review in seconds: a review at start-up must not delay the start for long.
TIMEOUT_S = 5.0

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class AccessReviews:
    """Reviews the rights of the operator's own token.

    Args:
        session: A session without a fence: a review changes nothing, so a process that does not lead may
            review.
    """

    def __init__(self, session: Session) -> None:
        self._reviews = client.AuthorizationV1Api(TypedClient(session))

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
        spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=_attributes(right, namespace, name))
        answer = await self._reviews.create_self_subject_access_review(
            client.V1SelfSubjectAccessReview(spec=spec), _request_timeout=TIMEOUT_S
        )
        return _allowed(answer.status)


class SubjectReviews:
    """Reviews the rights of another user; requires the right to create SubjectAccessReviews.

    Args:
        user: The user name, such as ``system:serviceaccount:plimsoll:plimsoll``.
    """

    def __init__(self, session: Session, user: str, groups: Sequence[str]) -> None:
        self._reviews = client.AuthorizationV1Api(TypedClient(session))
        self._user = user
        self._groups = list(groups)

    async def answer(self, right: Right, namespace: str, name: str = "") -> bool | None:
        """The same as :meth:`AccessReviews.answer`, for the user."""
        spec = client.V1SubjectAccessReviewSpec(
            user=self._user, groups=self._groups, resource_attributes=_attributes(right, namespace, name)
        )
        answer = await self._reviews.create_subject_access_review(
            client.V1SubjectAccessReview(spec=spec), _request_timeout=TIMEOUT_S
        )
        return _allowed(answer.status)


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
        typed = TypedClient(session)
        self._tokens = client.AuthenticationV1Api(typed)
        self._reviews = client.AuthorizationV1Api(typed)

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        """The user of a token; None when the API server rejects it, or it is not for the audience.

        Args:
            token: The token as the caller sent it.
            audience: The audience that the token must have; "" for the API server.

        Raises:
            APIError: The server refused the review, or did not respond.
        """
        audiences = [audience] if audience else None
        review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token, audiences=audiences))
        answer = await self._tokens.create_token_review(review, _request_timeout=TIMEOUT_S)
        status: client.V1TokenReviewStatus | None = answer.status  # the client's stub declares it required
        if status is None or not status.authenticated or status.user is None:
            return None
        if audience and audience not in (status.audiences or ()):  # the server does not support audiences
            return None
        user: dict[str, object] = status.user.to_dict()
        groups = user["groups"]
        return Caller(
            str(user["username"] or ""),
            str(user["uid"] or ""),
            tuple(map(str, groups)) if isinstance(groups, list) else (),
        )

    async def may_get(self, caller: Caller, path: str) -> bool:
        """Whether a caller may get a non-resource path.

        Raises:
            APIError: The server refused the review, or did not respond.
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
        status: client.V1SubjectAccessReviewStatus | None = answer.status  # as above
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
    """The result of a review; None without a status, which the client's stub does not declare as optional."""
    return None if status is None else status.allowed


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
