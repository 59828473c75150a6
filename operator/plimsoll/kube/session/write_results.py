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
from plimsoll.ports.ports import Answer, Verdict

_VERDICTS: tuple[tuple[type[APIError], Verdict], ...] = (
    (NotFound, Verdict.GONE),
    (Gone, Verdict.GONE),
    (Conflict, Verdict.CONFLICT),
    (TooManyRequests, Verdict.BUSY),
    (Invalid, Verdict.REFUSED),
    (Unauthorized, Verdict.REFUSED),
    (Fenced, Verdict.FENCED),
)


async def answered(write: Awaitable[object]) -> Answer:
    """Carry out a write and say how it was taken."""
    try:
        await write
    except APIError as exc:
        return answer_of(exc)
    return Answer(Verdict.DONE)


def answer_of(exc: APIError) -> Answer:
    """How the server took the write that raised."""
    verdict = next((verdict for kind, verdict in _VERDICTS if isinstance(exc, kind)), Verdict.UNKNOWN)
    if exc.status == 401:
        verdict = Verdict.BUSY  # the credentials are read again: later it may be accepted
    return Answer(
        verdict, exc.message or str(exc), retry_after_s=float(exc.details.get("retryAfterSeconds") or 0)
    )
