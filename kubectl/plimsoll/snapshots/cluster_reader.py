"""Reads the state of a whole cluster, each collection once, for commands that report on it."""

import time
from collections.abc import Callable, Collection

import msgspec

from plimsoll.cluster.watched_resources import GROUP_OWNERS, OPTIONAL, WATCHED
from plimsoll.kube.custom_resources import GROUP
from plimsoll.kube.metrics_api import UsageMeter
from plimsoll.kube.session.errors import APIError, NotFound
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import read_with
from plimsoll.policies.extensions import declared_here
from plimsoll.ports.usage import UsageReading
from plimsoll.snapshots.content import (
    DEPLOYMENTS,
    MAINTENANCES,
    POLICIES,
    RECORDS,
    SCALERS,
    SnapshotContent,
    UsageContent,
)
from plimsoll.usage.sources import usage_problem

#: Objects per page, as in kubectl.
PAGE = 500

#: Timeout of a page in seconds.
TIMEOUT_S = 120.0

#: Paths of the collections, by plural.
PATHS = {
    **{resource.name: resource.path for resource in (*WATCHED, *OPTIONAL)},
    DEPLOYMENTS: "/apis/apps/v1/deployments",
    SCALERS: "/apis/autoscaling/v2/horizontalpodautoscalers",
    POLICIES: f"{GROUP}/schedulingpolicies",
    RECORDS: f"{GROUP}/evictions",
    MAINTENANCES: f"{GROUP}/nodemaintenances",
}

#: Collections that every command requires.
ESSENTIAL = frozenset({"nodes", "pods"})

#: Collections whose absence is not reported.
UNREPORTED = frozenset(resource.name for resource in OPTIONAL) | {MAINTENANCES}

#: Called with the plural and the number of its objects read so far.
ReadProgress = Callable[[str, int], None]


class _Meta(msgspec.Struct, rename={"token": "continue"}):
    token: str = ""


class _Page(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    items: list[msgspec.Raw] | None = None


_PAGE = msgspec.json.Decoder(_Page)


async def read_cluster(
    session: Session,
    progress: ReadProgress = lambda _name, _count: None,
    only: Collection[str] = (),
    needed: Collection[str] = (),
) -> SnapshotContent:
    """List all collections that decisions read, or ``only`` some, by plural; usage is not read.

    Owners of pods are read where a policy derives groups from them.
    A collection that does not exist or may not be read is left out and named in ``missing``.

    Raises:
        APIError: The server did not respond, or nodes, pods, a ``needed`` collection or one of ``only``
            cannot be read.
    """
    taken = time.time()
    objects: dict[str, list[bytes]] = {}
    missing: dict[str, str] = {}
    essential = {*needed, *(only or ESSENTIAL)}
    declared = {each.name: each for each in declared_here()}
    for name, path in {**PATHS, **{each.name: each.path for each in declared.values()}}.items():
        if only and name not in only:
            continue
        try:
            selector = declared[name].selector if name in declared else ""
            objects[name] = await _read(session, name, path, progress, selector)
        except NotFound:
            if name in essential - ESSENTIAL:
                raise
            if name not in UNREPORTED:
                missing[name] = "the server does not have it"
        except APIError as exc:
            if exc.status == 0 or name in essential:
                raise
            missing[name] = exc.message or str(exc)
    if not only and any(map(_derives, objects.get(POLICIES, ()))):
        await _read_owners(session, progress, objects, missing)
    usage = UsageContent() if only else await _usage(session)
    return SnapshotContent(taken, session.address, objects, usage, missing)


async def _read_owners(
    session: Session, progress: ReadProgress, objects: dict[str, list[bytes]], missing: dict[str, str]
) -> None:
    """Add the owners from which groups are derived, of those kinds that the server has."""
    for owner in GROUP_OWNERS:
        try:
            objects[owner.name] = await _read(session, owner.name, owner.path, progress, "")
        except NotFound:
            continue
        except APIError as exc:
            if exc.status == 0:
                raise
            missing[owner.name] = exc.message or str(exc)


def _derives(policy: bytes) -> bool:
    """Whether a policy derives groups from the owners of pods, which are read only then."""
    try:
        found = msgspec.json.decode(policy)["spec"]["scheduling"]["groups"]["derive"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return False
    return bool(found == "Automatic")


async def _read(session: Session, name: str, path: str, progress: ReadProgress, selector: str) -> list[bytes]:
    """All objects of one collection, page by page."""
    found: list[bytes] = []
    params = {"limit": str(PAGE)} | ({"labelSelector": selector} if selector else {})
    while True:
        content = await session.request("GET", path, params=params, timeout_s=TIMEOUT_S)
        try:
            page = read_with(_PAGE, content)
        except msgspec.MsgspecError as exc:
            raise APIError(f"GET {path}", 0, "", f"the answer is no list: {exc}") from exc
        found += [bytes(item) for item in page.items or ()]
        progress(name, len(found))
        if not page.metadata.token:
            return found
        params["continue"] = page.metadata.token


async def _usage(session: Session) -> UsageContent:
    meter = UsageMeter(session)
    answer, nodes = await meter.nodes()
    if not answer.is_done:
        return UsageContent(problem=usage_problem(answer))
    answer, pods = await meter.pods()
    readings: tuple[UsageReading, ...] = tuple(pods) if answer.is_done else ()
    return UsageContent(tuple(nodes), readings, usage_problem(answer))
