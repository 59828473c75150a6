"""Checks through discovery whether the API server serves the resources of a group."""

from collections.abc import Iterable, Sequence

from plimsoll.cluster.watched_resources import WatchedResource
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


async def first_offered(
    session: Session, versions: Sequence[WatchedResource]
) -> tuple[WriteResult, WatchedResource]:
    """The first version of a kind that the API server serves; GONE when it serves none.

    Args:
        session: The session to send the requests with.
        versions: The kind in each of its versions, of one group; at least one.
    """
    group = versions[0].path.rpartition("/")[0].rpartition("/")[0]
    try:
        found = await session.object("GET", group)
    except APIError as exc:
        return answer_of(exc), versions[0]
    listed = found.get("versions")
    served = {each.get("version") for each in (listed if isinstance(listed, list) else ())}
    answer = WriteResult(WriteOutcome.GONE, f"{group} serves none of the versions")
    for each in versions:
        path, _, plural = each.path.rpartition("/")
        if path.rpartition("/")[2] in served:
            answer = await offered(session, path, (plural,))
            if answer.verdict is not WriteOutcome.GONE:
                return answer, each
    return answer, versions[0]
