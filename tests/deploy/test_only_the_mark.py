"""deploy/components/surge: what the operator may change of a Deployment, which RBAC cannot say."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import pytest
import yaml

from deploy.admitting import Admission
from deploy.manifests import DEPLOY, Obj, of_kind
from e2e.polling import eventually
from e2e.speaking import speaking
from plimsoll.devcluster.fields import struct
from plimsoll.model.deployment import SURGED

FILE = DEPLOY / "components/surge/only_the_mark.yaml"
OBJECTS: list[Obj] = list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
(POLICY,) = of_kind(OBJECTS, "ValidatingAdmissionPolicy")
(BINDING,) = of_kind(OBJECTS, "ValidatingAdmissionPolicyBinding")
OPERATOR = "system:serviceaccount:plimsoll:plimsoll"

BEFORE: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate"},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
    },
}


def changed(path: str, value: object, of: Obj = BEFORE) -> Obj:
    """The Deployment with one field set, by its path; None takes it away."""
    found = copy.deepcopy(of)
    at = found
    *way, last = path.split("|")
    for key in way:
        at = at.setdefault(key, {})
    if value is None:
        del at[last]
    else:
        at[last] = value
    return found


ANNOTATIONS = "spec|template|metadata|annotations"
OTHERS = changed(ANNOTATIONS, {"team": "a"})
MARKED = changed(ANNOTATIONS, {"team": "a", SURGED: "x from y"})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BEFORE, changed(ANNOTATIONS, {SURGED: "x from y"})),
        (OTHERS, MARKED),
        (MARKED, changed(ANNOTATIONS, {"team": "a", SURGED: "z from y"})),
        (MARKED, OTHERS),
        (changed(ANNOTATIONS, {SURGED: "x from y"}), BEFORE),
        (BEFORE, BEFORE),
    ],
)
def test_the_mark_may_be_set_changed_and_taken_away(old: Obj, new: Obj) -> None:
    """Whatever other annotations there are."""
    assert Admission(POLICY).refusal(new, old, user=OPERATOR) == ""


@pytest.mark.parametrize(
    "new",
    [
        changed("spec|template|spec", {"containers": [{"name": "app", "image": "evil:1"}]}, MARKED),
        changed("spec|template|spec|serviceAccountName", "admin", MARKED),
        changed("spec|template|metadata|labels", {"app": "other"}, MARKED),
        changed("spec|replicas", 0, MARKED),
        changed("spec|paused", value=True, of=MARKED),
        changed("spec|strategy", {"type": "Recreate"}, MARKED),
        changed("spec|minReadySeconds", 9, MARKED),
        changed("metadata|labels", {"app": "other"}, MARKED),
        changed("metadata|annotations", {"x": "y"}, MARKED),
        changed("metadata|ownerReferences", [{"name": "x"}], MARKED),
        changed(ANNOTATIONS, {"team": "b", SURGED: "x from y"}),
        changed(ANNOTATIONS, {"team": "a", "more": "b"}),
        changed(ANNOTATIONS, {SURGED: "x from y"}),
        changed("spec|template|metadata|annotations", None, MARKED),
    ],
)
def test_nothing_else_may_be_changed(new: Obj) -> None:
    """By the operator; everybody else is judged by others."""
    refusal = Admission(POLICY).refusal(new, MARKED, user=OPERATOR)

    assert refusal == (
        "the operator may change plimsoll.dev/surged in the template of a Deployment, and nothing else"
    )
    assert Admission(POLICY).refusal(new, MARKED) == ""


@pytest.mark.parametrize(
    ("obj", "model"),
    [(POLICY, "V1ValidatingAdmissionPolicy"), (BINDING, "V1ValidatingAdmissionPolicyBinding")],
    ids=["policy", "binding"],
)
def test_its_fields_exist(obj: Obj, model: str) -> None:
    """As Kubernetes' own description of the kinds has them."""
    strays: list[str] = []

    struct(model).taken(obj, strays)

    assert strays == []


@pytest.mark.e2e
@pytest.mark.skipif(
    "PLIMSOLL_E2E_KUBECONFIG" not in os.environ, reason="the development cluster has no admission policies"
)
async def test_a_real_api_server_takes_it_and_finds_no_fault() -> None:
    """What its check of types finds is in the status."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    name = f"{path}/{POLICY['metadata']['name']}"
    async with speaking(Path(os.environ["PLIMSOLL_E2E_KUBECONFIG"])) as speaker:
        (await speaker.request("POST", path, POLICY, fieldValidation="Strict")).accepted()
        try:

            async def checked() -> Obj:
                found: Obj = (await speaker.request("GET", name)).accepted().get("status", {})
                return found

            status = await eventually(checked, lambda found: "typeChecking" in found)
            assert not status["typeChecking"].get("expressionWarnings")
        finally:
            await speaker.request("DELETE", name)
