"""Lists collections page by page, for commands that read each object once."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from plimsoll.kube.session.errors import readable
from plimsoll.kube.session.session import Session

#: Objects per page.
PAGE = 500

#: Timeout of a page in seconds.
TIMEOUT_S = 15.0


async def objects(
    session: Session, path: str, selectors: Mapping[str, str] | None = None, *, limit: int = PAGE
) -> AsyncIterator[Mapping[str, Any]]:
    """The objects of a collection; ``selectors`` are ``fieldSelector`` and ``labelSelector``.

    Raises:
        APIError: The server refused the list, or did not respond.
    """
    params = {"limit": str(limit), **(selectors or {})}
    while True:
        page = await session.object("GET", path, params=params, timeout_s=TIMEOUT_S)
        with readable(f"GET {path}"):
            found = [each for each in page.get("items") or () if isinstance(each, Mapping)]
            token = str((page.get("metadata") or {}).get("continue") or "")
        for each in found:
            yield each
        if not token:
            return
        params = {**params, "continue": token}
