"""Encodes requests to HTTP extenders, and decodes responses: ``k8s.io/kube-scheduler/extender/v1``.

Fields have Go's spelling (``NodeNames``). Responses are read case-insensitively, as Go reads them, since many
extenders were written with lower-case tags. Objects are sent as documents of the API.

Source: kube-scheduler v1.36, ``staging/src/k8s.io/kube-scheduler/extender/v1/types.go``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.shortened import shortened

T = TypeVar("T")

#: Scores beyond this, in either direction, are invalid (the contract is 0 to 10).
LARGEST_SCORE = 2**31


#: Maximum length of a reason or error, and of different reasons in a response; the rest is cut.
LONGEST_TEXT, MOST_REASONS = 1024, 50

OTHER_REASONS = "an extender gave other reasons"


class AnswerError(ValueError):
    """An invalid response, in a sentence whose subject is the extender."""


class ReportedError(AnswerError):
    """An extender reports that it failed; its own words."""


class FilterAnswer(Struct, frozen=True):
    """An extender's verdict on the nodes of a request.

    Attributes:
        passed: Names of the feasible nodes.
        failed: Reasons, keyed by node, for rejections where removing pods might help.
        unresolvable: Reasons, keyed by node, for rejections where it cannot; these take precedence.
    """

    passed: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


class MetaVictims(Struct, frozen=True):
    """The victims on a node: uids, and the number that violates budgets."""

    uids: tuple[str, ...]
    violations: int = 0


class _Meta(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


# -- requests ----------------------------------------------------------------------------------------


def node_document(node: Node) -> bytes:
    """A node as a document with the fields that decisions read."""
    return msgspec.json.encode(node)


def nodes_body(pod: bytes, names: Sequence[str], documents: Sequence[bytes] | None) -> bytes:
    """``ExtenderArgs``: names for an extender that knows the nodes, otherwise the nodes themselves."""
    if documents is None:
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, msgspec.json.encode(list(names)))
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, b",".join(documents))


def victims_body(pod: bytes, victims: Mapping[str, tuple[Sequence[Pod], int]], *, names_only: bool) -> bytes:
    """``ExtenderPreemptionArgs``: by node, the victims and the number that violates budgets."""
    by_node = {
        node: {
            "Pods": [{"UID": each.uid} for each in pods] if names_only else list(pods),
            "NumPDBViolations": violations,
        }
        for node, (pods, violations) in victims.items()
    }
    member = b"NodeNameToMetaVictims" if names_only else b"NodeNameToVictims"
    return b'{"Pod":%b,"%b":%b}' % (pod, member, msgspec.json.encode(by_node))


def binding_body(pod: Pod, node: str) -> bytes:
    """``ExtenderBindingArgs``."""
    return msgspec.json.encode(
        {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
    )


# -- responses ---------------------------------------------------------------------------------------


def filter_answer(content: bytes, sent: Collection[str], *, names: bool) -> FilterAnswer:
    """Read an ``ExtenderFilterResult`` about the nodes ``sent``, as ``names`` or as objects.

    Raises:
        AnswerError: It has the wrong structure, reports a failure, or names a node that was not sent.
    """
    members = _members(content)
    _raise_error(members)
    given = _member(members, "nodenames", list[str]) if names else None
    if given is None:
        nodes = _member(members, "nodes", dict[str, msgspec.Raw])
        items = _member(_folded(nodes or {}), "items", list[_Named])
        given = [each.metadata.name for each in items or ()]
    known = sent if isinstance(sent, (set, frozenset)) else frozenset(sent)
    for name in given:
        if name not in known:
            raise AnswerError(
                f"claims a filtered node {_quoted(name)} which is not found in the input node list"
            )
    return FilterAnswer(
        frozenset(given),
        _reasons(_member(members, "failednodes", dict[str, str]) or {}),
        _reasons(_member(members, "failedandunresolvablenodes", dict[str, str]) or {}),
    )


def scores_answer(content: bytes) -> dict[str, int]:
    """Read a ``HostPriorityList``: points by node name, added up if a node occurs twice.

    Raises:
        AnswerError: It has the wrong structure.
    """
    scores: dict[str, int] = {}
    for each in _decoded(content, list[dict[str, msgspec.Raw]]) or ():
        entry = _folded(each)
        score = _member(entry, "score", int) or 0
        if abs(score) > LARGEST_SCORE:
            raise AnswerError(f"gives a score of {score}; scores lie in 0..10")
        host = _member(entry, "host", str) or ""
        scores[host] = scores.get(host, 0) + score
    return scores


def victims_answer(content: bytes) -> dict[str, MetaVictims]:
    """Read an ``ExtenderPreemptionResult``: by node.

    Raises:
        AnswerError: It has the wrong structure.
    """
    members = _members(content)
    by_node = _member(members, "nodenametometavictims", dict[str, dict[str, msgspec.Raw] | None]) or {}
    answer = {}
    for node, victims in by_node.items():
        entry = _folded(victims or {})
        pods = _member(entry, "pods", list[dict[str, msgspec.Raw] | None]) or []
        uids = tuple(_member(_folded(each or {}), "uid", str) or "" for each in pods)
        answer[node] = MetaVictims(uids, _member(entry, "numpdbviolations", int) or 0)
    return answer


def binding_answer(content: bytes) -> None:
    """Read an ``ExtenderBindingResult``.

    Raises:
        AnswerError: It has the wrong structure, or reports a failure.
    """
    _raise_error(_members(content))


# ----------------------------------------------------------------------------------------------------


def _members(content: bytes) -> dict[str, msgspec.Raw]:
    return _folded(_decoded(content, dict[str, msgspec.Raw]) or {})


def _folded(members: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    return {name.lower(): value for name, value in members.items()}


def _decoded(content: bytes | msgspec.Raw, kind: type[T]) -> T | None:
    """A value of that kind, or null."""
    wanted: Any = kind
    try:
        value: T | None = msgspec.json.decode(content, type=wanted | None)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise AnswerError(f"answers what cannot be read: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise AnswerError("answers what is not UTF-8") from exc
    return value


def _member(members: Mapping[str, msgspec.Raw], name: str, kind: type[T]) -> T | None:
    """The value of a member, None when it is absent or null."""
    found = members.get(name)
    if found is None:
        return None
    try:
        return _decoded(found, kind)
    except AnswerError as exc:
        raise AnswerError(f"{exc} in {_quoted(name)}") from exc


def _raise_error(members: Mapping[str, msgspec.Raw]) -> None:
    problem = _member(members, "error", str)
    if problem:
        raise ReportedError(problem[:LONGEST_TEXT].strip() or "the extender failed and gave no reason")


def _reasons(texts: Mapping[str, str]) -> dict[str, str]:
    """The reasons by node, fit to be counted and shown to people."""
    shown: set[str] = set()
    reasons = {}
    for node, text in texts.items():
        reason = text[:LONGEST_TEXT]
        if reason not in shown and len(shown) >= MOST_REASONS:
            reason = OTHER_REASONS
        shown.add(reason)
        reasons[node] = reason
    return reasons


def _quoted(name: str) -> str:
    return f'"{shortened(name, 100)}"'
