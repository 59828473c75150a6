"""Exceptions for errors of the API server; those of the client library stay chained.

::

    APIError                the server answered with a failure, or did not answer
    ├── Unauthorized        401, 403: credentials or RBAC
    ├── NotFound            404: the object, or the resource, is not there
    ├── Conflict            409: somebody was faster, or a precondition failed
    ├── Gone                410: the resource version is too old; list again
    ├── Invalid             422, 400: the object is refused; trying again is useless
    ├── TooManyRequests     429: a budget refuses an eviction, or the server is busy
    ├── Unavailable         5xx, or no answer: try again later
    ├── Fenced              not sent: this process does not lead
    └── Unconfigured        nothing was sent: there is no usable kubeconfig or service account
"""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

from plimsoll.framework.errors import PlimsollError
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult

#: Seconds that a server may ask us to wait.
LONGEST_WAIT_S = 3600.0

#: Characters of a server's reason and message that are kept: they go into logs, records and conditions.
LONGEST_REASON, LONGEST_MESSAGE = 128, 2048


class APIError(PlimsollError):
    """The API server refused or did not answer.

    Attributes:
        attempt: What was asked, such as ``POST /api/v1/namespaces/a/pods/b/binding``.
        status: HTTP status; 0 without an answer.
        reason: The machine's word, such as ``NotFound``.
        details: ``details`` of the Status, such as the causes.
        verdict: The outcome of a write that ends so.
    """

    verdict = WriteOutcome.UNKNOWN

    def __init__(
        self,
        attempt: str,
        status: int = 0,
        reason: str = "",
        message: str = "",
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(attempt, status, reason, message)
        self.attempt = attempt
        self.status = status
        self.reason = reason[:LONGEST_REASON]
        self.message = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
        self.details = details or {}

    def __str__(self) -> str:
        """What was attempted and why it failed."""
        return f"{self.attempt}: {self.status or 'no answer'} {self.reason}: {self.message}"


class Unauthorized(APIError):
    """Credentials or RBAC do not allow it."""

    verdict = WriteOutcome.REFUSED


class NotFound(APIError):
    """No such object or resource."""

    verdict = WriteOutcome.GONE


class Conflict(APIError):
    """Somebody was faster, or a precondition failed."""

    verdict = WriteOutcome.CONFLICT


class Gone(APIError):
    """The resource version is too old."""

    verdict = WriteOutcome.GONE


class Invalid(APIError):
    """The object is refused."""

    verdict = WriteOutcome.REFUSED


class TooManyRequests(APIError):
    """Later: a budget refuses the eviction, or the server is busy."""

    verdict = WriteOutcome.BUSY


class Unavailable(APIError):
    """No usable answer."""


class Fenced(APIError):
    """The write was not sent: another process may lead."""

    verdict = WriteOutcome.FENCED


class Unconfigured(APIError):
    """There is no usable kubeconfig or service account."""

    def __str__(self) -> str:
        """What was read and what is wrong with it."""
        return f"{self.attempt}: {self.message}"


@contextmanager
def readable(attempt: str) -> Iterator[None]:
    """Take what an answer holds to pieces that has no type yet.

    Raises:
        Unavailable: It holds something else than such an answer does.
    """
    try:
        yield
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as exc:
        raise Unavailable(attempt, message=f"the answer cannot be read: {exc!r}") from exc


_BY_STATUS: dict[int, type[APIError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def error_of(attempt: str, status: int, answer: dict[str, Any]) -> APIError:
    """The exception for a failed answer (a metav1.Status, or anything at all)."""
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else APIError)
    details = answer.get("details")
    return kind(
        attempt,
        status,
        str(answer.get("reason", "")),
        str(answer.get("message", "")),
        details if isinstance(details, dict) else None,
    )


async def answered(write: Awaitable[object]) -> WriteResult:
    """Carry out a write and return its outcome."""
    try:
        await write
    except APIError as exc:
        return answer_of(exc)
    return DONE


def answer_of(exc: APIError) -> WriteResult:
    """How the server took the write that raised."""
    # After a 401 the credentials are read again: later it may be accepted.
    verdict = WriteOutcome.BUSY if exc.status == 401 else exc.verdict
    return WriteResult(verdict, exc.message or str(exc), retry_after_s=_retry_after_s(exc.details))


def _retry_after_s(details: dict[str, Any]) -> float:
    """How long the server asks us to wait; 0 where it does not say so in a number."""
    seconds = details.get("retryAfterSeconds")
    return min(float(seconds), LONGEST_WAIT_S) if isinstance(seconds, int) and seconds > 0 else 0.0
