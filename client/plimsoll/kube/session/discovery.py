"""Checks through discovery whether the API server serves the resources of a group."""

from collections.abc import Iterable

from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult


async def offered(session: Session, group: str, needed: Iterable[str]) -> WriteResult:
    """DONE when the API server serves all needed resources, GONE when it does not.

    Args:
        session: The session to send the request with.
        group: The path of the group and version, such as ``/apis/resource.k8s.io/v1``.
        needed: The plurals of the resources.
    """
    try:
        found = await session.object("GET", group)
    except APIError as exc:
        return answer_of(exc)
    resources = found.get("resources")
    listed = resources if isinstance(resources, list) else ()
    served = [each.get("name") for each in listed if isinstance(each, dict)]
    missing = [name for name in needed if name not in served]
    if missing:
        return WriteResult(WriteOutcome.GONE, f"{group} does not serve {' and '.join(missing)}")
    return DONE
