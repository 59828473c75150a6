"""deploy/components/surge restricts the scaling of Deployments beyond RBAC."""

from __future__ import annotations

import pytest
import yaml

from deploy.admission import Admission
from deploy.manifests import DEPLOY, Obj, of_kind

FILE = DEPLOY / "components/surge/only_one_more.yaml"
OBJECTS: list[Obj] = list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
(POLICY,) = of_kind(OBJECTS, "ValidatingAdmissionPolicy")
(BINDING,) = of_kind(OBJECTS, "ValidatingAdmissionPolicyBinding")
OPERATOR = "system:serviceaccount:plimsoll:plimsoll"


def scale(replicas: int) -> Obj:
    """The subresource; 0 is left out, as the API server does."""
    spec = {"replicas": replicas} if replicas else {}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("before", "now", "allowed"),
    [(3, 4, True), (4, 3, True), (3, 3, True), (3, 5, False), (3, 1, False), (1, 0, False), (0, 1, True)],
)
def test_the_operator_changes_the_number_by_one(before: int, now: int, *, allowed: bool) -> None:
    """And never to none; everybody else is judged by others."""
    judge = Admission(POLICY)

    assert (judge.refusal(scale(now), scale(before), user=OPERATOR) == "") is allowed
    assert judge.refusal(scale(now), scale(before)) == ""
