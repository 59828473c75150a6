"""deploy/admission restricts the annotations that change protections.

The development cluster stores admission policies and evaluates none. So the expressions are checked and
evaluated here by the library that it judges custom resources with, on requests as an API server makes them;
and, where ``PLIMSOLL_E2E_KUBECONFIG`` names a real control plane, by that one.
"""

from __future__ import annotations

import pytest
import yaml

from deploy.admission import ORDINARY, Admission
from deploy.manifests import DEPLOY, Obj, of_kind
from plimsoll.toolkit.descheduling.disruption_signals import OUR_EVICT, SIGNALS, Bearer, Effect, Form

FILE = DEPLOY / "admission/guarded_annotations.yaml"
OBJECTS: list[Obj] = list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
(POLICY,) = of_kind(OBJECTS, "ValidatingAdmissionPolicy")
(BINDING,) = of_kind(OBJECTS, "ValidatingAdmissionPolicyBinding")
#: Controllers write these on pods of others, and are ordinary users here: KubeVirt could not migrate.
BY_CONTROLLERS = {Effect.COST, Effect.IN_PROGRESS, Effect.CARRIED_OUT}
GUARDED = {
    each.key
    for each in SIGNALS
    if (each.bearer, each.form) == (Bearer.POD, Form.ANNOTATION) and each.effect not in BY_CONTROLLERS
}


def pod(**annotations: str) -> Obj:
    """A pod with annotations, by the part of their names behind the last slash."""
    full = {name.rpartition("/")[2].replace("-", "_"): name for name in GUARDED - {OUR_EVICT}}
    given = {full.get(name, name): value for name, value in annotations.items()}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "annotations": given}, "spec": {}}


def workload(kind: str, template: Obj) -> Obj:
    """A workload that makes such pods."""
    spec: Obj = {"template": {"metadata": template["metadata"], "spec": {}}}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return {"kind": kind, "metadata": {"name": "web"}, "spec": spec}


REFUSED = "only administrators may set descheduler.alpha.kubernetes.io/evict on pods"


@pytest.mark.parametrize(
    ("obj", "old", "groups", "said"),
    [
        pytest.param(pod(), None, ORDINARY, "", id="none"),
        pytest.param(pod(owner="a"), None, ORDINARY, "", id="another"),
        pytest.param(pod(evict="true"), None, ORDINARY, REFUSED, id="created"),
        pytest.param(pod(evict="true"), pod(), ORDINARY, REFUSED, id="added"),
        pytest.param(pod(evict="true"), pod(evict="false"), ORDINARY, REFUSED, id="changed"),
        pytest.param(pod(evict="true"), pod(evict="true"), ORDINARY, "", id="there before"),
        pytest.param(pod(), pod(evict="true"), ORDINARY, "", id="taken away"),
        pytest.param(pod(evict="true"), None, ["system:masters"], "", id="administrator"),
        pytest.param(
            pod(evict="true"), None, ["system:serviceaccounts:kube-system"], "", id="from a template"
        ),
        pytest.param(
            pod(evict="true"), None, ["system:serviceaccounts:team-a"], REFUSED, id="a team's controller"
        ),
        *(
            pytest.param(workload(kind, pod(evict="true")), workload(kind, pod()), ORDINARY, REFUSED, id=kind)
            for kind in ("Deployment", "StatefulSet", "Job", "CronJob")
        ),
        pytest.param(workload("CronJob", pod()), None, ORDINARY, "", id="CronJob without"),
        pytest.param(
            {"kind": "Deployment", "metadata": pod(evict="true")["metadata"], "spec": {"template": {}}},
            None,
            ORDINARY,
            "",
            id="of the workload itself, which means nothing",
        ),
    ],
)
def test_ordinary_users_may_not_add_them(obj: Obj, old: Obj | None, groups: list[str], said: str) -> None:
    """Neither to a pod nor to a template; what is there may stay."""
    refusal = Admission(POLICY).refusal(obj, old, groups)

    assert refusal.startswith(said)
    assert bool(refusal) is bool(said)


def test_it_guards_every_annotation_that_the_operator_heeds() -> None:
    """Each by itself, and all of them in one sentence."""
    for name in GUARDED:
        assert name in Admission(POLICY).refusal({"metadata": {"annotations": {name: "x"}}})
    told = Admission(POLICY).refusal({"metadata": {"annotations": dict.fromkeys(GUARDED, "x")}})
    assert all(name in told for name in GUARDED)
