"""Matches node selectors, names and tolerations against all nodes of a snapshot in one step.

Shared by the plugins that restrict nodes (NodeAffinity, TaintToleration, PodTopologySpread). A label is a
column of small integers, so a requirement costs one vectorised comparison per operator, not one per node.

Source: kube-scheduler v1.36, ``component-helpers/scheduling/corev1``.
"""

from collections.abc import Callable, Iterable

import numpy as np

from plimsoll.model.columns.columns import ABSENT, BoolArray, IntArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.node import Taint
from plimsoll.model.kinds.pod import Toleration
from plimsoll.model.selectors import NAME_FIELD, NodeMatcher, NodeTerm, Requirement
from plimsoll.model.taints import untolerated


def matching_nodes(matcher: NodeMatcher, snapshot: Snapshot) -> BoolArray:
    """Where ``nodeSelector`` and the required node affinity hold, shape (N,)."""
    matching: BoolArray = np.ones(len(snapshot), dtype=np.bool_)
    for key, value in matcher.equal:
        matching &= _equal(key, value, snapshot)
    if matcher.terms is None:
        return matching
    either = np.zeros(len(snapshot), dtype=np.bool_)
    for term in matcher.terms:
        either |= term_nodes(term, snapshot)
    return matching & either


def term_nodes(term: NodeTerm, snapshot: Snapshot) -> BoolArray:
    """Where one node selector term holds, shape (N,); nowhere if it is empty or malformed."""
    if term.error or term.is_empty:
        return np.zeros(len(snapshot), dtype=np.bool_)
    matching: BoolArray = np.ones(len(snapshot), dtype=np.bool_)
    for requirement in term.requirements:
        matching &= requirement_nodes(requirement, snapshot)
    for field, value, equal in term.names:
        named = np.zeros(len(snapshot), dtype=np.bool_)
        if field != NAME_FIELD:
            named[:] = value == ""
        else:
            row = snapshot.row_of(value)
            if row is not None:
                named = snapshot.rows == row
        matching &= named if equal else ~named
    return matching


def requirement_nodes(requirement: Requirement, snapshot: Snapshot) -> BoolArray:
    """Where one requirement on labels holds, shape (N,)."""
    ids = snapshot.label_ids(requirement.key)
    label = snapshot.label(requirement.key)
    match requirement.operator:
        case "Exists":
            present: BoolArray = ids != ABSENT
            return present
        case "DoesNotExist":
            absent: BoolArray = ids == ABSENT
            return absent
        case "In" | "NotIn":
            # A value that no node has would be found as ABSENT and match the nodes without the label.
            known = [found for value in requirement.values if (found := label.find(value)) != ABSENT]
            if not known:
                return np.full(len(ids), requirement.operator == "NotIn")
            within: BoolArray = ids == known[0] if len(known) == 1 else np.isin(ids, known)
            return within if requirement.operator == "In" else ~within
        case _:
            verdicts = [requirement.matches({requirement.key: value}) for value in label.values]
            picked: BoolArray = np.array([*verdicts, False], dtype=np.bool_)[ids]
            return picked


def by_taints(judge: Callable[[tuple[Taint, ...]], int], snapshot: Snapshot) -> IntArray:
    """``judge`` of each node's taints, shape (N,) int64; called once for each distinct list of taints."""
    ids = snapshot.taint_ids
    taint_sets = snapshot.taint_sets
    if len(taint_sets) == 1:
        return np.full(len(snapshot), judge(taint_sets[0]), dtype=np.int64)
    verdicts = np.zeros(len(taint_sets), dtype=np.int64)
    for used in np.flatnonzero(np.bincount(ids)):
        verdicts[used] = judge(taint_sets[used])
    judged: IntArray = verdicts[ids]
    return judged


def tolerated_nodes(tolerations: Iterable[Toleration], snapshot: Snapshot) -> BoolArray:
    """Where every taint that keeps pods off a node is tolerated, shape (N,)."""
    tolerations = tuple(tolerations)
    verdicts = by_taints(lambda taints: untolerated(taints, tolerations) is None, snapshot)
    return verdicts.astype(np.bool_)


def _equal(key: str, value: str, snapshot: Snapshot) -> BoolArray:
    found = snapshot.label(key).find(value)
    if found == ABSENT:
        return np.zeros(len(snapshot), dtype=np.bool_)
    equal: BoolArray = snapshot.label_ids(key) == found
    return equal
