"""``plimsoll check`` says whether an admission policy keeps others from writing records."""

import copy
from typing import Any

import pytest

from deploy.manifests import Obj
from deploy.test_own_records import BINDING, POLICY
from plimsoll.access.rights import Right
from plimsoll.check.record_guard import AdmissionPolicies, judged_record_guard
from plimsoll.preflight.findings import Level, Unread
from plimsoll.preflight.rights import service_account

OURS, OTHER = service_account("plimsoll", "plimsoll", "a test"), service_account("tools", "mover", "a test")


def with_spec(obj: Obj, **fields: Any) -> Obj:
    """The object with other fields in its spec."""
    return {**copy.deepcopy(obj), "spec": {**obj["spec"], **fields}}


def with_rule(**fields: Any) -> Obj:
    """The policy with another rule."""
    (rule,) = POLICY["spec"]["matchConstraints"]["resourceRules"]
    return with_spec(POLICY, matchConstraints={"resourceRules": [{**rule, **fields}]})


def test_the_policy_of_deploy_is_found() -> None:
    """Under any name."""
    renamed = [{**POLICY, "metadata": {"name": "mine"}}], [with_spec(BINDING, policyName="mine")]

    (finding,) = judged_record_guard(AdmissionPolicies([POLICY], [BINDING]), OURS)
    (another,) = judged_record_guard(AdmissionPolicies(*renamed), OURS)

    assert (finding.level, another.level) == (Level.OK, Level.OK)
    assert finding.message == (
        "admission policy plimsoll-own-records lets only system:serviceaccount:plimsoll:plimsoll write them"
    )


@pytest.mark.parametrize(
    ("policy", "binding"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(POLICY, None, id="not-bound"),
        pytest.param(POLICY, with_spec(BINDING, policyName="other"), id="another-bound"),
        pytest.param(POLICY, with_spec(BINDING, validationActions=["Warn", "Audit"]), id="warns"),
        pytest.param(
            POLICY, with_spec(BINDING, matchResources={"namespaceSelector": {}}), id="some-namespaces"
        ),
        pytest.param(with_spec(POLICY, failurePolicy="Ignore"), BINDING, id="ignores-its-failures"),
        pytest.param(with_rule(resources=["evictions"]), BINDING, id="not-the-status"),
        pytest.param(with_rule(operations=["CREATE"]), BINDING, id="not-updates"),
        pytest.param(with_rule(apiGroups=["policy"]), BINDING, id="another-group"),
        pytest.param(with_spec(POLICY, matchConditions=None), BINDING, id="for-nobody"),
    ],
)
def test_a_cluster_without_one_is_warned_of(policy: Obj | None, binding: Obj | None) -> None:
    """Records may be forged there."""
    found = AdmissionPolicies([policy] if policy else [], [binding] if binding else [])

    (finding,) = judged_record_guard(found, OURS)

    assert finding.level is Level.WARNING
    assert finding.remedy == (
        "install it: kubectl apply -f deploy/base/own_records.yaml, or rbac.guardRecords=true of the chart"
    )


def test_a_policy_that_names_another_account_is_an_error() -> None:
    """This operator cannot write its records then."""
    (finding,) = judged_record_guard(AdmissionPolicies([POLICY], [BINDING]), OTHER)

    assert finding.level is Level.ERROR
    assert finding.message == (
        "admission policy plimsoll-own-records denies system:serviceaccount:tools:mover to write them:"
        " no pod is moved"
    )


def test_what_cannot_be_read_is_said() -> None:
    """A user of the command may lack the right."""
    right = Right("list", "admissionregistration.k8s.io", "validatingadmissionpolicies")

    (finding,) = judged_record_guard(Unread(right, "", 403, "forbidden"), OURS)

    assert finding.level is Level.WARNING
    assert finding.message.startswith("not checked: you may not list")
