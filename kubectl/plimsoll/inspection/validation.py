"""Validates documents: policies as in their status, other kinds as the API server would.

The operator's own code (``plimsoll.policies.judgement``) judges policies, and assigns scheduler names among
the policies of one call as it would in a cluster.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import orjson
from msgspec import Struct
from pydantic import Field, ValidationError

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.api.schema.resource import GROUP, VERSION, CustomResource
from plimsoll.api.v1alpha1 import KINDS, SchedulingPolicy
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.inspection.catalogue import Catalogue, RebalancingJudge, SchedulingJudge
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.policies.conditions import work_of
from plimsoll.policies.judgement import PolicyChecks, PolicyVerdict, divide

_SERVED = f"{GROUP}/{VERSION}"
#: Unknown field, in kubectl's words: kubectl rejects it, and the API server would drop it.
_STRANGER = re.compile(r"(spec(?:(?!\.args\b)[^:;])*): there is no such field")
_MODELS: Mapping[str, type[CustomResource]] = {kind.definition.kind: kind for kind in KINDS}


class SubmittedDocument(Struct, frozen=True):
    """A document of a file, or an unreadable file.

    Attributes:
        number: Number of the document in its file, from 1.
        problem: Why there is no content, "" if there is.
    """

    source: str
    number: int
    content: Mapping[str, Any]
    problem: str = ""


class ValidatedDocument(AnswerPart):
    """The judgement about one document."""

    source: str = Field(description="The file; stdin for standard input.")
    document: int = Field(description="Number of the document in its file, from 1.")
    kind: str = Field(description="Kind of the object, empty where it has none.")
    name: str = Field(description="Name of the object, empty where it has none.")
    verdict: Literal["accepted", "refused", "skipped"] = Field(
        description="skipped: the kind is not of plimsoll.dev."
    )
    reason: str | None = Field(default=None, description="Why it is refused, in one word, as in the status.")
    message: str = Field(description="What it does, or the field that is wrong and what is allowed.")


class Validation(Answer):
    """The answer of plimsoll validate."""

    accepted: int = Field(description="Documents that would be accepted.")
    refused: int = Field(description="Documents that would be refused, and files that cannot be read.")
    skipped: int = Field(description="Documents of other kinds.")
    documents: tuple[ValidatedDocument, ...] = Field(description="All of them, in their order.")


def validated(submitted: Sequence[SubmittedDocument], catalogue: Catalogue, now: datetime) -> Validation:
    """Judge each document, and policies against each other; ``now`` has a time zone."""
    checks = PolicyChecks(SchedulingJudge(catalogue), RebalancingJudge(catalogue, ClusterObjects(), now))
    verdicts: dict[int, PolicyVerdict] = {}
    found: dict[int, ValidatedDocument] = {}
    for place, each in enumerate(submitted):
        try:
            content = orjson.loads(orjson.dumps(each.content, default=str, option=orjson.OPT_NON_STR_KEYS))
        except (TypeError, orjson.JSONDecodeError) as exc:
            found[place] = _said(each, "refused", f"it holds what JSON cannot carry: {exc}", "Unreadable")
            continue
        kind = str(content.get("kind") or "")
        model = _MODELS.get(kind)
        if each.problem:
            found[place] = _said(each, "refused", each.problem, "Unreadable")
        elif not kind:
            found[place] = _said(each, "refused", "kind: is required", "InvalidSpec")
        elif str(content.get("apiVersion", "")).partition("/")[0] != GROUP or model is None:
            found[place] = _said(each, "skipped", _foreign(content, kind))
        elif content["apiVersion"] != _SERVED:
            problem = f'apiVersion: "{str(content["apiVersion"])[:100]}" is not served; use {_SERVED}'
            found[place] = _said(each, "refused", problem, "InvalidSpec")
        elif model is not SchedulingPolicy:
            problem = _problem(model, content)
            found[place] = _said(each, "refused" if problem else "accepted", problem, "InvalidSpec")
        else:
            verdicts[place] = checks.judge(content)
    lost = _lost(submitted, verdicts)
    for place, verdict in verdicts.items():
        reason, sentence = lost.get(place) or (verdict.reason, verdict.sentence)
        if verdict.policy is None or reason:
            sentence = _STRANGER.sub(r'unknown field "\1"', sentence)
            found[place] = _said(submitted[place], "refused", sentence, reason)
        else:
            found[place] = _said(submitted[place], "accepted", work_of(verdict.policy, {}))
    documents = tuple(found[place] for place in sorted(found))
    counts = {word: sum(each.verdict == word for each in documents) for word in ("accepted", "refused")}
    skipped = len(documents) - sum(counts.values())
    return Validation(**counts, skipped=skipped, documents=documents)


def _said(
    given: SubmittedDocument,
    verdict: Literal["accepted", "refused", "skipped"],
    message: str,
    reason: str | None = None,
) -> ValidatedDocument:
    metadata = given.content.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return ValidatedDocument(
        source=given.source,
        document=given.number,
        kind=str(given.content.get("kind") or ""),
        name=str(name or ""),
        verdict=verdict,
        reason=reason if verdict == "refused" else None,
        message=message,
    )


def _foreign(content: Mapping[str, Any], kind: str) -> str:
    version = str(content.get("apiVersion") or "")
    if version.partition("/")[0] == GROUP:
        return f"{GROUP} has no kind {kind[:100]}; the kinds are {', '.join(_MODELS)}"
    if kind in ("DeschedulerPolicy", "KubeSchedulerConfiguration"):
        return f"{kind} is of another scheduler; plimsoll convert makes a SchedulingPolicy of it"
    return f"the kind is not of {GROUP}"


def _problem(model: type[CustomResource], content: Mapping[str, Any]) -> str:
    """The schema's errors about an object, "" for none."""
    try:
        model.model_validate(content)
    except ValidationError as exc:
        return summary(field_errors(exc, model=model))
    return ""


def _lost(
    submitted: Sequence[SubmittedDocument], verdicts: Mapping[int, PolicyVerdict]
) -> dict[int, tuple[str, str]]:
    """Why an accepted policy would serve nothing among the others, keyed by position."""
    lost: dict[int, tuple[str, str]] = {}
    named: dict[str, int] = {}
    for place, verdict in verdicts.items():
        if verdict.policy is None:
            continue
        name = verdict.policy.metadata.name
        if name in named:
            other = submitted[named[name]]
            lost[place] = (
                "NameTaken",
                f'metadata.name: "{name}" is also that of document {other.number} of {other.source}',
            )
        else:
            named[name] = place
    aged = sorted(named.values(), key=lambda place: (_created(submitted[place]), place))
    divided = divide(_accepted(verdicts[place] for place in aged))
    return lost | {named[name]: why for name, why in divided.lost.items()}


def _accepted(verdicts: Iterable[PolicyVerdict]) -> list[tuple[SchedulingPolicy, tuple[str, object]]]:
    return [(each.policy, each.order) for each in verdicts if each.policy is not None]


def _created(given: SubmittedDocument) -> str:
    """The creation time of an object; objects without one are the youngest."""
    return str((given.content.get("metadata") or {}).get("creationTimestamp") or "~")
