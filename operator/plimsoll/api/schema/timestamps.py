"""Time on the wire: RFC 3339 in UTC with whole seconds, as Kubernetes' own objects carry it."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime


def to_second(moment: datetime) -> datetime:
    """The moment in UTC, cut to the second, so that what is read back equals what was written."""
    return moment.astimezone(UTC).replace(microsecond=0)


Timestamp = Annotated[AwareDatetime, AfterValidator(to_second)]
