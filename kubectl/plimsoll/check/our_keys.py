"""Judges annotations and labels below plimsoll.dev/: each must have a meaning."""

from collections.abc import Iterator, Mapping, Sequence

from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked
from plimsoll.preflight.policy_conditions import Document, name_of
from plimsoll.preflight.workloads import RunningWorkload, keys_of
from plimsoll.toolkit.descheduling.disruption_signals import unknown_keys


def judged_keys(
    keys: Mapping[str, Sequence[str]] | Unread,
    workloads: Sequence[RunningWorkload],
    policies: Sequence[Document],
) -> Iterator[Finding]:
    """A warning for each key that has no meaning; ``keys`` are those of nodes and namespaces, by object."""
    found: dict[str, Sequence[str]] = {each.text: each.keys for each in workloads}
    for each in policies:
        found[f"SchedulingPolicy {name_of(each)}"] = keys_of(each.get("metadata") or {})
    if isinstance(keys, Unread):
        yield unchecked(Area.KEYS, "nodes and namespaces", keys)
    else:
        found.update(keys)
    for subject, written in found.items():
        for said in unknown_keys(written):
            yield Finding(
                Area.KEYS, Level.WARNING, subject, said, "correct it: docs/reference/keys.md has all keys"
            )
