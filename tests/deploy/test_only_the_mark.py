"""deploy/components/surge restricts changes of Deployments beyond RBAC."""

from __future__ import annotations

import copy

import pytest
import yaml

from deploy.admission import Admission
from deploy.manifests import DEPLOY, Obj, of_kind
from plimsoll.model.kinds.deployment import SURGED

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
