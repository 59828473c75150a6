"""Parses moments given by users: a duration before now, such as ``24h``, or an RFC 3339 time."""

from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from plimsoll.api.schema.fields import Duration, duration_s
from plimsoll.commands.errors import UserError

_DURATION = TypeAdapter[str](Duration)


def moment_of(text: str, flag: str, now: float) -> float:
    """Convert the text to seconds since the epoch.

    Raises:
        UserError: The text is neither.
    """
    try:
        return now - duration_s(_DURATION.validate_python(text))
    except ValidationError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f'{flag}: "{text[:100]}" is neither a duration such as 24h or 90m nor a time such as'
            " 2026-01-31T08:00:00Z"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def seconds_of(text: str, flag: str) -> float:
    """Convert a duration to seconds.

    Raises:
        UserError: The text is not a duration.
    """
    try:
        return duration_s(_DURATION.validate_python(text))
    except ValidationError:
        raise UserError(f'{flag}: "{text[:100]}" is no duration; give one such as 1h or 90m') from None
