"""Decides descheduler's recorded cases again and compares: the evictions, their order, classes and errors.

What the recording marks as one of several possible outcomes is compared by what all of them have in
common: totals within ranges, pods that always go, pods that never do.
"""

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from plimsoll.planning.upstream.cycle import UpstreamEviction
from recordings.descheduler import Decided, decide

Key = tuple[str, str, str, str, str]
"""Profile, strategy, node, namespace and name: one eviction."""


def holds_cases(folder: Path) -> bool:
    """Whether the recordings of a folder are descheduler's: their cases have a policy."""
    for file in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(file) as lines:
            return "policy" in orjson.loads(next(iter(lines), b"{}"))
    return False


def replay(folder: Path, family: str | None = None) -> tuple[int, list[str], Counter[str]]:
    """Decide all cases of a folder.

    Returns:
        How many cases agreed, all differences with the case's id, and how many cases failed by family.
    """
    passed, mismatches, failed = 0, list[str](), Counter[str]()
    for file in sorted(folder.glob(f"{family or '*'}.jsonl.gz")):
        with gzip.open(file) as lines:
            for line in lines:
                case = orjson.loads(line)
                found = [f"{case['id']} {each}" for each in differences(case)]
                mismatches += found
                passed += not found
                failed[file.name.removesuffix(".jsonl.gz")] += bool(found)
    return passed, mismatches, failed


def differences(case: Mapping[str, Any]) -> Iterator[str]:
    """How the outcome of a case differs from the recorded one, a sentence each; none when it agrees."""
    recorded_error = case["expected"]["error"]
    if recorded_error is not None and recorded_error["stage"] == "panic":
        return  # upstream crashed here: there is nothing to agree with
    yield from compared(case, decide(case))


def compared(case: Mapping[str, Any], decided: Decided) -> Iterator[str]:
    """How what came of a case differs from what was recorded."""
    expected = case["expected"]
    recorded_error = expected["error"]
    if bool(recorded_error) != bool(decided.error):
        wanted = recorded_error and recorded_error["message"]
        yield f"policy error: expected {wanted!r}, got {decided.error!r}"
        return
    if recorded_error:
        return
    got = [_key_of(each) for each in decided.outcome.evictions]
    if expected["stable"]:
        yield from _same(expected, got)
    else:
        yield from _possible(case, got)
    yield from _classes(expected, decided)
    is_dry_run = case.get("evictionMode") != "terminate" and not case.get("evictionErrors")
    if decided.rehearsed is not None and is_dry_run:
        planned = [_key_of(each) for each in decided.rehearsed.evictions]
        if planned != got:
            yield f"the dry run differs: carried out {got}, planned {planned}"
    if decided.error_of_conversion:
        yield f"cannot be converted: {decided.error_of_conversion}"
    if decided.by_policy is not None:
        once = {key[3:]: key[1:] for key in reversed(got)}  # a policy evicts no pod twice in a run
        first = [once[key] for key in dict.fromkeys(key[3:] for key in got)]
        if list(decided.by_policy) != first:
            yield f"the converted policy's run differs: expected {first}, got {decided.by_policy}"
    failed = sorted({(each.profile, each.kind.value) for each in decided.outcome.failures})
    recorded = sorted(
        (each["profile"], each["extensionPoint"]) for each in expected.get("pluginErrors") or ()
    )
    if failed != recorded:
        yield f"plugin errors: expected {recorded}, got {failed}"


def _same(expected: Mapping[str, Any], got: Sequence[Key]) -> Iterator[str]:
    wanted = [_key(each) for each in expected["evictions"]]
    missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    yield from (f"not evicted: {'/'.join(each)}" for each in missing.elements())
    yield from (f"evicted: {'/'.join(each)}" for each in extra.elements())
    if missing or extra:
        return
    if _blocks(wanted) != _blocks(got):
        yield f"order of the strategies: expected {_blocks(wanted)}, got {_blocks(got)}"
    if expected["order"] == "total" and wanted != got:
        yield f"order: expected {wanted}, got {list(got)}"
    if expected["order"] == "perNode" and _by_node(wanted) != _by_node(got):
        yield f"order within a node: expected {_by_node(wanted)}, got {_by_node(got)}"


def _possible(case: Mapping[str, Any], got: Sequence[Key]) -> Iterator[str]:
    ranges = case["expected"]["invariants"]
    owners = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": _owner_and_node(each)
        for each in case["pods"]
    }
    pods = {f"{namespace}/{name}" for _, _, _, namespace, name in got}
    counts: dict[str, Counter[str]] = {
        "byPlugin": Counter(f"{profile}/{strategy}" for profile, strategy, _, _, _ in got),
        "byNode": Counter(node for _, _, node, _, _ in got),
        "byNamespace": Counter(namespace for _, _, _, namespace, _ in got),
        "byOwnerNode": Counter(owners[f"{namespace}/{name}"] for _, _, _, namespace, name in got),
    }
    yield from _within("total", len(got), ranges["total"])
    for what, counted in counts.items():
        for each in sorted({*counted, *ranges[what]}):
            yield from _within(f"{what} {each}", counted[each], ranges[what].get(each, (0, 0)))
    yield from (f"must be evicted: {each}" for each in sorted(set(ranges["must"]) - pods))
    allowed = {*ranges["must"], *ranges["may"]}
    yield from (f"may not be evicted: {each}" for each in sorted(pods - allowed))


def _classes(expected: Mapping[str, Any], decided: Decided) -> Iterator[str]:
    if "classification" not in expected:
        return
    wanted = [
        (each["plugin"], sorted(each["underutilized"]), sorted(each["overutilized"]))
        for each in expected["classification"]
    ]
    got = [
        (strategy, sorted(found.underutilized), sorted(found.overutilized))
        for strategy, found in decided.outcome.classes
    ]
    if wanted != got:
        yield f"classification: expected {wanted}, got {got}"


def _within(what: str, count: int, bounds: Sequence[int]) -> Iterator[str]:
    if not bounds[0] <= count <= bounds[1]:
        yield f"{what}: expected {bounds[0]} to {bounds[1]}, got {count}"


def _key(recorded: Mapping[str, str]) -> Key:
    return (
        recorded["profile"],
        recorded["plugin"],
        recorded["node"],
        recorded["namespace"],
        recorded["name"],
    )


def _key_of(eviction: UpstreamEviction) -> Key:
    pod = eviction.pod
    return (eviction.profile, eviction.strategy, eviction.node, pod.namespace, pod.name)


def _blocks(keys: Iterable[Key]) -> list[tuple[str, str]]:
    return [block for block, _ in groupby((profile, strategy) for profile, strategy, _, _, _ in keys)]


def _by_node(keys: Iterable[Key]) -> dict[tuple[str, ...], list[Key]]:
    found: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key in keys:
        found[key[:3]].append(key)
    return found


def _owner_and_node(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    owner = (metadata.get("ownerReferences") or [{"kind": "", "name": ""}])[0]
    return "|".join((metadata["namespace"], owner["kind"], owner["name"], pod["spec"].get("nodeName", "")))
