"""Converts documents of descheduler and kube-scheduler to policies that the operator accepts.

PodGroups become PodGroups of another kind, and queues those of one policy.
"""

import copy
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.api.schema.resource import API_VERSION
from plimsoll.framework import ConfigurationError
from plimsoll.migration.documents import MigrationError, SourceDocument
from plimsoll.migration.group_conversion import FORMATS, converted_group, format_of
from plimsoll.migration.queue_conversion import COHORT, converted_queue, in_a_tree
from plimsoll.migration.queue_conversion import VERSIONS as QUEUE_VERSIONS
from plimsoll.migration.rebalancing_conversion import rebalancing_policies
from plimsoll.migration.report import FieldChange, ReportLine, ReportWriter
from plimsoll.migration.scheduling_conversion import scheduling_policies
from plimsoll.model.kinds.pod_group import CORE
from plimsoll.policies.judgement import PolicyChecks

DESCHEDULER, SCHEDULER = "DeschedulerPolicy", "KubeSchedulerConfiguration"

GROUP = "PodGroup"

#: The name of the policy with all queues.
QUEUES_POLICY = "queues"

VERSIONS: Mapping[str, str] = {
    DESCHEDULER: "descheduler/v1alpha2",
    SCHEDULER: "kubescheduler.config.k8s.io/v1",
}
"""The formats that can be converted: API version by kind."""


class ConvertedFiles(Struct, frozen=True):
    """The outcome of a conversion.

    Attributes:
        policies: SchedulingPolicies, ready to be applied.
        groups: PodGroups, likewise.
        report: The outcome of each field.
    """

    policies: tuple[Mapping[str, Any], ...]
    report: tuple[ReportLine, ...]
    groups: tuple[Mapping[str, Any], ...] = ()


def convert_documents(
    documents: Sequence[SourceDocument],
    checks: PolicyChecks,
    plugins: Collection[str],
    *,
    keep_behaviour: bool,
    groups_as: str = CORE,
    suspended: bool = False,
) -> ConvertedFiles:
    """Convert all documents of some files; documents of other kinds are only reported.

    Args:
        documents: The documents of all files.
        checks: Judge the resulting policies.
        plugins: Names of the available scheduling plugins.
        keep_behaviour: Whether the policies are to decide as the source did.
        groups_as: The API group of the PodGroups that are written.
        suspended: Whether the policies are suspended.

    Raises:
        MigrationError: Nothing can be converted, or one document cannot be.
    """
    policies: list[Mapping[str, Any]] = []
    groups: list[Mapping[str, Any]] = []
    report: list[ReportLine] = []
    names: set[str] = set()
    queues, lines = _queues([each for each in documents if each.kind in QUEUE_VERSIONS], suspended=suspended)
    if queues is not None:
        names.add(QUEUES_POLICY)
        verdict = checks.judge(queues)
        if verdict.policy is None:
            raise MigrationError(_origins(documents), f"the policy would not be accepted: {verdict.sentence}")
        policies.append(queues)
    report += lines
    for each in documents:
        if each.kind in QUEUE_VERSIONS:
            continue
        if each.kind == GROUP:
            group, lines = _group(each, groups_as)
            groups.append(group)
            report += lines
            continue
        if each.kind not in VERSIONS:
            report.append(_left_out(each))
            continue
        _check_version(each)
        found, lines = _converted(each, names, plugins, keep=keep_behaviour, suspended=suspended)
        for policy in found:
            verdict = checks.judge(policy)
            if verdict.policy is None:
                raise MigrationError(each.origin, f"the policy would not be accepted: {verdict.sentence}")
        policies += found
        report += lines
    if not (policies or groups):
        raise MigrationError(_origins(documents), _nothing(documents))
    return ConvertedFiles(tuple(policies), tuple(report), tuple(groups))


def _queues(
    documents: Sequence[SourceDocument], *, suspended: bool
) -> tuple[dict[str, Any] | None, list[ReportLine]]:
    """The policy with the queues of all files, and what became of them; None without queues."""
    found: dict[str, dict[str, Any]] = {}
    lines: list[ReportLine] = []
    for each in documents:
        if each.api_version not in QUEUE_VERSIONS[each.kind]:
            known = ", ".join(QUEUE_VERSIONS[each.kind])
            given = each.api_version or "missing"
            raise MigrationError(each.origin, f"apiVersion of {each.kind} is {given}; convert reads {known}")
        report = ReportWriter(each)
        try:
            queue = converted_queue(each.body, report, QUEUES_POLICY)
        except ConfigurationError as exc:
            raise MigrationError(each.origin, str(exc)) from exc
        if queue is not None and queue["name"] in found:
            raise MigrationError(each.origin, f"two queues have the name {queue['name']}; rename one")
        if queue is not None:
            found[queue["name"]] = queue
        lines += report.lines("fairShare has no such field.")
    if not found:
        return None, lines
    cohorts = {str(each.body["metadata"]["name"]) for each in documents if each.kind == COHORT}
    queues = in_a_tree(found.values(), cohorts)
    scheduling = {"schedulerName": "plimsoll", "fairShare": {"reclaim": "AboveDeserved", "queues": queues}}
    spec = ({"suspend": True} if suspended else {}) | {"scheduling": scheduling}
    metadata = {"name": QUEUES_POLICY}
    return {"apiVersion": API_VERSION, "kind": "SchedulingPolicy", "metadata": metadata, "spec": spec}, lines


def _group(document: SourceDocument, target: str) -> tuple[dict[str, Any], list[ReportLine]]:
    found = format_of(document.api_version)
    if not found:
        known = ", ".join(version for each in FORMATS.values() for version in each.versions)
        given = document.api_version or "missing"
        raise MigrationError(document.origin, f"apiVersion of PodGroup is {given}; convert reads {known}")
    if found == target:
        others = ", ".join(name for name in FORMATS if name != target)
        raise MigrationError(
            document.origin, f"it is a PodGroup of {target} already; give --groups-as one of {others}"
        )
    report = ReportWriter(document)
    try:
        group = converted_group(document.body, target, report)
    except ConfigurationError as exc:
        raise MigrationError(document.origin, str(exc)) from exc
    return group, report.lines("PodGroups have no such field, or none that matters here.")


def _converted(
    document: SourceDocument, names: set[str], plugins: Collection[str], *, keep: bool, suspended: bool
) -> tuple[list[dict[str, Any]], list[ReportLine]]:
    report = ReportWriter(document)
    try:
        if document.kind == SCHEDULER:
            specs = scheduling_policies(document.body, report, plugins, keep=keep, suspended=suspended)
            unknown = "kube-scheduler has no such field in this version."
        else:
            specs = rebalancing_policies(document.body, report, keep=keep)
            unknown = "descheduler has no such field, or it has no effect there."
    except ConfigurationError as exc:
        raise MigrationError(document.origin, str(exc)) from exc
    renamed = {name: _unique(name, names) for name, _ in specs}
    lines = [_renamed(each, renamed) for each in report.lines(unknown)]
    policies = [
        {
            "apiVersion": API_VERSION,
            "kind": "SchedulingPolicy",
            "metadata": {"name": renamed[name]},
            "spec": ({"suspend": True} if suspended else {}) | copy.deepcopy(spec),
        }
        for name, spec in specs
    ]
    return policies, lines


def _renamed(line: ReportLine, names: Mapping[str, str]) -> ReportLine:
    return replace(line, policies=tuple(names[each] for each in line.policies))


def _unique(name: str, names: set[str]) -> str:
    """A valid object name that no other policy has."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[:200] or "converted"
    found, count = plain, 1
    while found in names:
        count += 1
        found = f"{plain}-{count}"
    names.add(found)
    return found


def _check_version(document: SourceDocument) -> None:
    known = VERSIONS[document.kind]
    if document.api_version != known:
        given = document.api_version or "missing"
        raise MigrationError(
            document.origin, f"apiVersion of {document.kind} is {given}; convert reads {known}"
        )


def _left_out(document: SourceDocument) -> ReportLine:
    kind = document.kind or "an object without kind"
    return ReportLine(
        FieldChange.NO_COUNTERPART,
        document.origin,
        "kind",
        document.line(("kind",)),
        (),
        "",
        f"{kind} is no PodGroup, queue or configuration of descheduler or kube-scheduler; left out.",
    )


def _origins(documents: Sequence[SourceDocument]) -> str:
    return ", ".join(dict.fromkeys(each.origin for each in documents)) or "no file"


def _nothing(documents: Sequence[SourceDocument]) -> str:
    kinds = sorted({each.kind or "no kind" for each in documents if each.kind not in VERSIONS})
    if not kinds:
        return "there is no profile with an enabled strategy, so there is nothing to convert"
    return (
        f"nothing to convert: found {', '.join(kinds)}; convert reads {DESCHEDULER}, {SCHEDULER}, {GROUP},"
        f" queues and ConfigMaps that carry one of them"
    )
