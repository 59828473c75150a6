"""The check reads rules, versions and commands as a plain second reading does."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.manifests import Obj
from deploy.test_own_records import BINDING, POLICY
from plimsoll.check.record_guard import AdmissionPolicies, judged_record_guard
from plimsoll.check.server import NEWEST, OLDEST, judged_version
from plimsoll.preflight.findings import Level
from plimsoll.preflight.rights import service_account
from plimsoll.preflight.workloads import RunningWorkload, image_words, workload

OURS = service_account("plimsoll", "plimsoll", "a test")
(RULE,) = POLICY["spec"]["matchConstraints"]["resourceRules"]
EVICTIONS = {**RULE, "resources": ["evictions"]}
STATUS = {**RULE, "resources": ["evictions/status"]}
FOREIGN = {**RULE, "apiGroups": ["apps"], "resources": ["deployments"]}
CREATED = {**RULE, "operations": ["CREATE"]}


def guarded_by(*rules: Obj) -> Obj:
    return {**POLICY, "spec": {**POLICY["spec"], "matchConstraints": {"resourceRules": list(rules)}}}


@pytest.mark.parametrize("rules", list(itertools.permutations([FOREIGN, CREATED, EVICTIONS, STATUS])))
def test_the_rules_of_a_policy_count_in_any_order(rules: Any) -> None:
    """Each is read by itself: one of another group, or only of creations, hides none that follows."""
    (finding,) = judged_record_guard(AdmissionPolicies([guarded_by(*rules)], [BINDING]), OURS)

    assert finding.level is Level.OK


@pytest.mark.parametrize(
    "rules", [(FOREIGN, CREATED), (FOREIGN, EVICTIONS, {**STATUS, "operations": ["CREATE"]}), (STATUS,)]
)
def test_rules_that_guard_records_only_together_with_another_are_too_few(rules: Any) -> None:
    """Both the records and their status, and each creation and update."""
    guards = [each for each in rules if each is not FOREIGN and {"CREATE", "UPDATE"} <= {*each["operations"]}]
    judged = {resource for each in guards for resource in each["resources"]}

    (finding,) = judged_record_guard(AdmissionPolicies([guarded_by(*rules)], [BINDING]), OURS)

    assert (finding.level is Level.OK) is ({"evictions", "evictions/status"} <= judged)


@pytest.mark.parametrize("minor", range(OLDEST[1] - 2, NEWEST[1] + 3))
def test_each_version_is_judged_by_the_oldest_and_the_newest(minor: int) -> None:
    """The sentence names the bound that the version is beyond."""
    found = judged_version(f"v1.{minor}.2")

    if minor < OLDEST[1]:
        expected = (
            f"Kubernetes v1.{minor}.2 is older than 1.{OLDEST[1]}, the oldest version that is supported"
        )
    elif minor > NEWEST[1]:
        expected = (
            f"Kubernetes v1.{minor}.2 is supported, newer than 1.{NEWEST[1]}, the newest that was tried"
        )
    else:
        expected = f"Kubernetes v1.{minor}.2 is supported"
    assert found.message == expected
    assert found.level is (Level.WARNING if minor < OLDEST[1] else Level.OK)


def test_a_version_that_cannot_be_read_is_named_with_the_oldest() -> None:
    """It is not taken for a supported one."""
    found = judged_version("none")

    assert found.level is Level.WARNING
    assert found.message == f'its version "none" cannot be read; 1.{OLDEST[1]} and newer are supported'


WORDS = st.sampled_from(
    ["/usr/bin/hyperkube", "kube-scheduler", "--config", "--config=/a/b", "-v", "x/y", "--kubeconfig", "a=b"]
)


def a_workload(commands: Any) -> RunningWorkload:
    return RunningWorkload("Pod", "default", "p", {}, "", 1, (), commands)


@settings(max_examples=60)
@given(st.lists(st.lists(WORDS, max_size=5).map(tuple), max_size=3).map(tuple))
def test_programs_and_flags_of_commands_are_read_as_by_hand(commands: Any) -> None:
    """Programs: the first two words that are no flags. A flag: after =, or the next word."""
    programs, config = set(), []
    for command in commands:
        for place, word in enumerate(command):
            if place in (0, 1) and not word.startswith("-"):
                programs.add(word.split("/")[-1])
            if word == "--config" and place < len(command) - 1:
                config.append(command[place + 1])
            if word.startswith("--config="):
                config.append(word.removeprefix("--config="))

    found = a_workload(commands)

    assert found.programs == programs
    assert found.flag("--config") == (config or [""])[0]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("localhost/team/app:1", ["team", "app"]),
        ("registry:5000/app", ["app"]),
        ("a.example/localhost", ["localhost"]),
        ("team/localhost", ["team", "localhost"]),
        ("app", ["app"]),
    ],
)
def test_the_words_of_an_image_are_those_behind_its_registry(image: str, words: list[str]) -> None:
    assert list(image_words(image)) == words


CONDITIONS = st.tuples(
    st.sampled_from(["Ready", "Initialized", "PodScheduled"]), st.sampled_from(["True", "False"])
)


@settings(max_examples=40)
@given(st.lists(CONDITIONS, max_size=4))
def test_a_pod_is_ready_by_one_of_its_conditions(conditions: list[tuple[str, str]]) -> None:
    """Whatever the others say, and where it stands."""
    documents = [{"type": kind, "status": status} for kind, status in conditions]

    assert workload("Pod", {"status": {"conditions": documents}}).ready == (("Ready", "True") in conditions)
