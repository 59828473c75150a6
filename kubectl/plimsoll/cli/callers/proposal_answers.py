"""Approves or rejects proposed moves of policies in mode Approve, from the command line.

All names are checked before anything is written: a wrong name changes nothing. Each decision is written at
the version that was read, so a record that has changed meanwhile is not approved; it is rejected if it still
waits. Without names, what has gone or no longer waits by then needs no rejection, and is passed over. The
moves of a bundle are executed together or not at all, so one name decides for the whole bundle.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from plimsoll.api.v1alpha1.annotations import ANSWERS, APPROVED
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework.errors import PlimsollError
from plimsoll.kube.custom_resources import GROUP
from plimsoll.kube.session.errors import Conflict, NotFound
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.model.counted import counted

#: Maximum number of attempts to write a rejection, each at the latest version.
TRIES = 5


class ProposalError(PlimsollError):
    """The proposals cannot be approved or rejected; nothing was written."""


class Question(Struct, frozen=True):
    """The selection of proposals to approve or reject.

    Attributes:
        namespace: The namespace of the records; "" for all, if there are no names.
        names: The names of records, whose decision may still be changed; empty for all undecided ones.
        policy: The policy of the records; "" for any.
    """

    namespace: str
    names: tuple[str, ...] = ()
    policy: str = ""


async def answer(session: Session, question: Question, *, approved: bool) -> Sequence[str]:
    """Write the decisions; returns a line for each record, as in kubectl, and one for each waiting bundle.

    Raises:
        ProposalError: A name is wrong, or its record does not wait for a decision or has changed meanwhile.
        APIError: The server refused a request, or did not respond.
    """
    chosen = _chosen(await _records(session, question.namespace), question)
    lines: list[str] = []
    for record in chosen:
        try:
            await _write(session, record, approved=approved)
        except (Conflict, NotFound) as exc:
            if not (approved or question.names or await _still_waits(session, record)):
                continue  # nothing is left to reject, and it was not named
            done = f"; answered before it: {', '.join(lines)}" if lines else ""
            raise ProposalError(
                f"{_name(record)} has changed since it was read{done}; look at it, and say it again"
            ) from exc
        lines.append(f"{_name(record)} {'approved' if approved else 'rejected'}")
    return [*lines, *(_elsewhere(chosen) if approved else ())]


async def undecided(session: Session, question: Question) -> Sequence[Sequence[str]]:
    """What waits for a decision: record, pod, node, target, policy and reason of each.

    Raises:
        APIError: The server refused a request, or did not respond.
    """
    rows = []
    for each in _chosen(await _records(session, question.namespace), question):
        spec, pod = each["spec"], each["spec"].get("pod") or {}
        named = (spec.get(key) or "" for key in ("fromNode", "targetNode", "policy", "reason"))
        record = f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        rows.append((record, f"{pod.get('namespace', '')}/{pod.get('name', '')}".strip("/"), *named))
    return rows


async def _write(session: Session, record: Mapping[str, Any], *, approved: bool) -> None:
    """Annotate one record.

    Raises:
        Conflict: The record has changed meanwhile, and is to be approved, or no longer waits.
    """
    path = _path(record)
    for tries_left in reversed(range(1 if approved else TRIES)):
        change = {
            "metadata": {
                "resourceVersion": record["metadata"]["resourceVersion"],
                "annotations": {APPROVED: "true" if approved else "false"},
            }
        }
        try:
            await session.request("PATCH", path, change, content_type=MERGE_PATCH)
        except Conflict:
            record = await session.object("GET", path) if tries_left else record
            if not tries_left or not _waits(record):
                raise
        else:
            return


async def _still_waits(session: Session, record: Mapping[str, Any]) -> bool:
    """Whether the record, as it is now, waits for a decision."""
    try:
        return _waits(await session.object("GET", _path(record)))
    except NotFound:
        return False


async def _records(session: Session, namespace: str) -> Sequence[Mapping[str, Any]]:
    path = f"{GROUP}/namespaces/{namespace}/evictions" if namespace else f"{GROUP}/evictions"
    listed = await session.object("GET", path)
    records: Sequence[Mapping[str, Any]] = listed.get("items") or ()
    return records


def _chosen(records: Sequence[Mapping[str, Any]], question: Question) -> Sequence[Mapping[str, Any]]:
    """The records to annotate, with complete bundles."""
    waiting = [
        record
        for record in records
        if _waits(record) and (not question.policy or record["spec"].get("policy") == question.policy)
    ]
    if not question.names:
        return [record for record in waiting if not _is_answered(record)]
    known = {record["metadata"]["name"]: record for record in records}
    ready = {record["metadata"]["name"]: record for record in waiting}
    bundles = set()
    for name in question.names:
        if name not in known:
            raise ProposalError(
                f"no eviction {name} in namespace {question.namespace}; kubectl get plev -A lists the records"
            )
        if name not in ready:
            raise ProposalError(_why_not(known[name], question.policy))
        bundles.add(_bundle(ready[name]))
    named = set(question.names)
    return [
        record
        for record in waiting
        if record["metadata"]["name"] in named or (_bundle(record) and _bundle(record) in bundles)
    ]


def _elsewhere(chosen: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """The bundles with a part in another namespace that must be approved, too."""
    here = Counter(map(_bundle, chosen))
    moves = {_bundle(record): record["spec"]["bundle"]["moves"] for record in chosen if _bundle(record)}
    return [
        f"bundle {bundle} has {counted(count, 'move')}, {here[bundle]} of them here: it waits for the others"
        f" (kubectl get plev -A -l plimsoll.dev/bundle={bundle})"
        for bundle, count in moves.items()
        if here[bundle] < count
    ]


def _waits(record: Mapping[str, Any]) -> bool:
    return record["spec"].get("mode") == Mode.APPROVE and _phase(record) == Phase.PLANNED


def _is_answered(record: Mapping[str, Any]) -> bool:
    """Whether the record was approved or rejected, and the operator has not processed that yet."""
    return (record["metadata"].get("annotations") or {}).get(APPROVED) in ANSWERS


def _why_not(record: Mapping[str, Any], policy: str) -> str:
    spec = record["spec"]
    if policy and spec.get("policy") != policy:
        return f"{_name(record)} is of policy {spec.get('policy')}, not of {policy}"
    if spec.get("mode") != Mode.APPROVE:
        return f"{_name(record)} needs no approval: it was made in mode {spec.get('mode')}"
    return f"{_name(record)} is {_phase(record)}: only Planned ones wait for an answer"


def _phase(record: Mapping[str, Any]) -> str:
    return str((record.get("status") or {}).get("phase") or "without a phase")


def _bundle(record: Mapping[str, Any]) -> str:
    return str((record["spec"].get("bundle") or {}).get("name") or "")


def _path(record: Mapping[str, Any]) -> str:
    metadata = record["metadata"]
    return f"{GROUP}/namespaces/{metadata['namespace']}/evictions/{metadata['name']}"


def _name(record: Mapping[str, Any]) -> str:
    return f"eviction.plimsoll.dev/{record['metadata']['name']}"
