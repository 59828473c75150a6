"""Reads from a record when its eviction was announced, by the API server's clock.

Phases have the times of the machines that wrote them. Whether a pod was made before or after its predecessor
was asked to leave can be said by the clock alone that says when pods are made. So phase Evicting is written
under a name of its own, and stays this manager's in the record: ``metadata.managedFields`` has the time.

Source: the API server sets the time of an entry when its manager changes fields, and only then;
``status.transitions`` is a map by phase, so that later phases leave an earlier one to its manager.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

#: Who writes phase Evicting, and nothing else.
ANNOUNCER = "plimsoll-announcer"


def announced_at(metadata: Mapping[str, Any]) -> datetime | None:
    """When phase Evicting was written; None for a record in which that is not to be read."""
    entries = metadata.get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("manager") == ANNOUNCER:
            try:
                moment = datetime.fromisoformat(str(entry.get("time")))
            except ValueError:
                return None
            return moment if moment.tzinfo else None
    return None
