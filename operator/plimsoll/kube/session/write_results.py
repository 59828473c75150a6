"""Errors of the API server as the Answers that control understands."""

from collections.abc import Awaitable

from plimsoll.kube.session.errors import (
    APIError,
    Conflict,
    Fenced,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from plimsoll.ports.writes import WriteOutcome, WriteResult

_VERDICTS: tuple[tuple[type[APIError], WriteOutcome], ...] = (
    (NotFound, WriteOutcome.GONE),
    (Gone, WriteOutcome.GONE),
    (Conflict, WriteOutcome.CONFLICT),
    (TooManyRequests, WriteOutcome.BUSY),
    (Invalid, WriteOutcome.REFUSED),
    (Unauthorized, WriteOutcome.REFUSED),
    (Fenced, WriteOutcome.FENCED),
)


async def answered(write: Awaitable[object]) -> WriteResult:
    """Carry out a write and say how it was taken."""
    try:
        await write
    except APIError as exc:
        return answer_of(exc)
    return WriteResult(WriteOutcome.DONE)


def answer_of(exc: APIError) -> WriteResult:
    """How the server took the write that raised."""
    verdict = next((verdict for kind, verdict in _VERDICTS if isinstance(exc, kind)), WriteOutcome.UNKNOWN)
    if exc.status == 401:
        verdict = WriteOutcome.BUSY  # the credentials are read again: later it may be accepted
    return WriteResult(
        verdict, exc.message or str(exc), retry_after_s=float(exc.details.get("retryAfterSeconds") or 0)
    )
