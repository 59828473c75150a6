"""Exceptions for errors of the API server; the client library's exceptions stay chained.

::

    APIError                the server responded with a failure, or did not respond
    ├── Unauthorized        401, 403: credentials or RBAC
    ├── NotFound            404: the object or the resource does not exist
    ├── Conflict            409: another client wrote first, or a precondition failed
    ├── Gone                410: the resource version is too old; list again
    ├── Invalid             422, 400: the object is rejected; a retry is useless
    ├── TooManyRequests     429: a budget refuses an eviction, or the server is busy
    ├── Unavailable         5xx, or no response: try again later
    ├── Fenced              not sent: this process does not lead
    └── Unconfigured        nothing was sent: there is no usable kubeconfig or service account
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plimsoll.framework.errors import PlimsollError
from plimsoll.model.shortened import shortened
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: Maximum of a server's ``Retry-After``, in seconds.
LONGEST_WAIT_S = 3600.0

#: Maximum length of a server's reason and message, in characters: they are copied into logs, records and
#: conditions.
LONGEST_REASON, LONGEST_MESSAGE = 128, 2048


class APIError(PlimsollError):
    """The API server refused a request or did not respond.

    Attributes:
        attempt: The request, such as ``POST /api/v1/namespaces/a/pods/b/binding``.
        status: HTTP status; 0 without a response.
        reason: The machine-readable reason, such as ``NotFound``.
        details: ``details`` of the Status, such as the causes.
        verdict: The outcome of a write that fails with this error.
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
        self.message = shortened(message, LONGEST_MESSAGE)
        self.details = details or {}

    def __str__(self) -> str:
        """The request and the cause of its failure."""
        return f"{self.attempt}: {self.status or 'no answer'} {self.reason}: {self.message}"


class Unauthorized(APIError):
    """Credentials or RBAC do not allow the request."""

    verdict = WriteOutcome.REFUSED


class NotFound(APIError):
    """The object or resource does not exist."""

    verdict = WriteOutcome.GONE


class Conflict(APIError):
    """Another client wrote first, or a precondition failed."""

    verdict = WriteOutcome.CONFLICT


class Gone(APIError):
    """The resource version is too old."""

    verdict = WriteOutcome.GONE


class Invalid(APIError):
    """The object is rejected."""

    verdict = WriteOutcome.REFUSED


class TooManyRequests(APIError):
    """A PodDisruptionBudget refuses the eviction, or the server is busy; try again later."""

    verdict = WriteOutcome.BUSY


class Unavailable(APIError):
    """The server sent no usable response."""


class Fenced(APIError):
    """The write was not sent: another process may lead."""

    verdict = WriteOutcome.FENCED


class Unconfigured(APIError):
    """There is no usable kubeconfig or service account."""

    def __str__(self) -> str:
        """The source that was read and its problem."""
        return f"{self.attempt}: {self.message}"


@contextmanager
def readable(attempt: str) -> Iterator[None]:
    """Convert errors that occur while an untyped response is taken apart.

    Raises:
        Unavailable: The response does not have the expected content.
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
    """The exception for a failed request; ``answer`` is a metav1.Status, or any other object."""
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else APIError)
    details = answer.get("details")
    return kind(
        attempt,
        status,
        str(answer.get("reason", "")),
        str(answer.get("message", "")),
        details if isinstance(details, dict) else None,
    )


def answer_of(exc: APIError) -> WriteResult:
    """The outcome of a write that raised."""
    # After a 401 the credentials are read again, so a later attempt may succeed.
    verdict = WriteOutcome.BUSY if exc.status == 401 else exc.verdict
    return WriteResult(verdict, exc.message or str(exc), retry_after_s=_retry_after_s(exc.details))


def _retry_after_s(details: dict[str, Any]) -> float:
    """The seconds that the server requests to wait; 0 if it gives no number."""
    seconds = details.get("retryAfterSeconds")
    return min(float(seconds), LONGEST_WAIT_S) if isinstance(seconds, int) and seconds > 0 else 0.0
