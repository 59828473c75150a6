"""Every finding about every program, for policies that place, move, consolidate, or do nothing.

PLIMSOLL_WRITE_GOLDEN=1 writes the file.
"""

from __future__ import annotations

import itertools

import pytest

from cli.golden_files import check
from plimsoll.preflight.definitions import NAMED, _named
from plimsoll.preflight.findings import Certainty
from plimsoll.preflight.other_schedulers import (
    PROGRAMS,
    DetectedProgram,
    ProgramActivity,
    ProgramKind,
    judged_programs,
)
from plimsoll.preflight.workloads import running_pod
from plimsoll.testing.builders import a_pod

ACTIVITIES = {
    "nothing": ProgramActivity({}, (), ()),
    "placing": ProgramActivity({"default-scheduler": "all"}, (), ()),
    "placing others": ProgramActivity({"mine": "all"}, (), ()),
    "moving": ProgramActivity({}, ("one", "two"), ()),
    "consolidating": ProgramActivity({"default-scheduler": "all"}, ("one", "two"), ("one",)),
}


def test_each_program_meets_each_kind_of_policy_as_before() -> None:
    lines = []
    for program, (name, doing) in itertools.product(PROGRAMS, ACTIVITIES.items()):
        (found,) = judged_programs([DetectedProgram(program, ("it runs",), Certainty.LIKELY)], doing)
        lines.append(f"{program.name}, {name}: {found.level.name}: {found.message} | {found.remedy}")
    assert {each.work for each in PROGRAMS} == {*ProgramKind}
    check("check", "programs", "text", "\n".join(lines) + "\n")


@pytest.mark.parametrize("count", range(1, 7))
def test_three_pieces_of_evidence_are_named_and_the_others_counted(count: int) -> None:
    evidence = tuple(f"e{at}" for at in range(count))
    seen = DetectedProgram(PROGRAMS[0], evidence, Certainty.CERTAIN)
    (found,) = judged_programs([seen], ACTIVITIES["nothing"])
    named = [each for each in evidence if each in found.message]

    assert named == [*evidence[:3]]
    assert ("more" in found.message) is (count > 3)
    assert (f"and {count - 3} more" in found.message) is (count > 3)
    assert found.message.startswith("it is at work")


@pytest.mark.parametrize("count", range(1, 7))
def test_three_fields_are_named_and_the_others_counted(count: int) -> None:
    paths = tuple(f"f{at}" for at in range(count))
    rest = f" and {count - NAMED} more" if count > NAMED else ""
    assert _named(paths) == ", ".join(paths[:NAMED]) + rest


def test_a_pod_of_the_cluster_is_a_workload_by_its_namespace() -> None:
    found = running_pod(a_pod("p", namespace="there", labels={"a": "b"}))
    assert (found.namespace, found.name, found.text) == ("there", "p", "Pod there/p")
