"""Judges annotations and labels below plimsoll.dev/: each must have a meaning."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked
from plimsoll.preflight.policy_conditions import Document, name_of
from plimsoll.preflight.workloads import RunningWorkload, keys_of
from plimsoll.toolkit.descheduling.disruption_signals import OUR_KEYS, OUR_PREFIX


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
        for said in _unknown(written):
            yield Finding(
                Area.KEYS, Level.WARNING, subject, said, "correct it: docs/reference/keys.md has all keys"
            )


def _unknown(keys: Iterable[str]) -> Iterator[str]:
    """A sentence for each key below our prefix that has no meaning."""
    for key in keys:
        name = key.removeprefix(OUR_PREFIX)
        if key.startswith(OUR_PREFIX) and name not in OUR_KEYS:
            close = get_close_matches(name, sorted(OUR_KEYS), n=1, cutoff=0.6)
            hint = f"; did you mean {OUR_PREFIX}{close[0]}?" if close else ""
            yield f"{key[:128]} has no meaning{hint}"
