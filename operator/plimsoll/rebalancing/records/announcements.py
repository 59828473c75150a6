"""Reads from a record when its eviction was announced, by the API server's clock.

Phases have the times of the machines that wrote them. Only the clock that dates pods can tell whether a pod
was created before or after its predecessor was asked to leave. So phase Evicting is written by a field
manager of its own, and ``metadata.managedFields`` keeps the API server's time of that write.

Source: the API server sets the time of an entry when its manager changes fields, and only then.
``status.transitions`` is a map by phase, so later phases leave an earlier one to its manager.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

#: The field manager that writes phase Evicting, and nothing else.
ANNOUNCER = "plimsoll-announcer"


def announced_at(metadata: Mapping[str, Any]) -> datetime | None:
    """When phase Evicting was written; None if the record does not show it."""
    entries = metadata.get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("manager") == ANNOUNCER:
            try:
                moment = datetime.fromisoformat(str(entry.get("time")))
            except ValueError:
                return None
            return moment if moment.tzinfo else None
    return None
