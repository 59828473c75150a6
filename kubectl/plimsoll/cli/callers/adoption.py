"""Writes, applies and removes the admission objects of policies that adopt pods, with the caller's rights."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from plimsoll.adoption.admission_objects import admission_objects, adopt_of, named_objects
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.check.adoption import effect_of
from plimsoll.cli.callers.kyverno import kyverno_policy
from plimsoll.cli.callers.pauses import OperatorLease, operator_namespace
from plimsoll.commands.errors import UserError
from plimsoll.kube.adoption import AdmissionObjects
from plimsoll.kube.custom_resources import GROUP
from plimsoll.kube.lists import objects
from plimsoll.kube.session.session import Session
from plimsoll.preflight.policy_conditions import name_of, parsed, reason_not_to_adopt

Document = Mapping[str, Any]


async def printed(session: Session, operator: OperatorLease, names: Sequence[str]) -> Sequence[str]:
    """The documents in YAML, for ``kubectl apply``.

    Raises:
        UserError: A policy does not adopt pods.
        APIError: The server refused a request, or did not respond.
    """
    _, policies = await _adopting(session, names)
    namespace = operator.namespace or await operator_namespace(session, operator)
    version = await AdmissionObjects(session).served_version()
    found: list[Document] = []
    try:
        for policy in policies:
            found += (
                admission_objects(policy, namespace, version)
                if version
                else [kyverno_policy(policy, namespace)]
            )
    except ValueError as exc:
        raise UserError(str(exc)) from exc
    return ["---\n".join(yaml.safe_dump(each, sort_keys=False) for each in found).rstrip("\n")]


async def apply(session: Session, operator: OperatorLease, names: Sequence[str]) -> Sequence[str]:
    """Apply the documents; returns a line for each, and whether pods are adopted.

    Raises:
        UserError: A policy does not adopt pods, or the server does not have the kinds.
        APIError: The server refused a request, or did not respond.
    """
    documents, policies = await _adopting(session, names)
    namespace = operator.namespace or await operator_namespace(session, operator)
    admission = AdmissionObjects(session)
    version = await admission.served_version()
    if not version:
        raise UserError(
            f"{session.address} does not serve MutatingAdmissionPolicy (Kubernetes 1.36): install Kyverno,"
            " leave --apply out, and apply what is printed"
        )
    lines = []
    for policy in policies:
        for document in admission_objects(policy, namespace, version):
            await admission.apply(document)
            lines.append(f"{_text(document)} applied")
        name = policy.metadata.name
        lines.append(f"policy {name}: {effect_of(policy, reason_not_to_adopt(documents[name]))}")
    return lines


async def remove(session: Session, names: Sequence[str]) -> Sequence[str]:
    """Delete the admission objects of policies, which may not exist any more; returns the lines to print.

    Raises:
        UserError: The server does not have the kinds.
        APIError: The server refused a request, or did not respond.
    """
    admission = AdmissionObjects(session)
    version = await admission.served_version()
    if not version:
        raise UserError(f"{session.address} does not serve MutatingAdmissionPolicy: delete what you applied")
    lines = []
    for name in names:
        for document in reversed(named_objects(name, version)):  # the binding first: nothing is half there
            was_there = await admission.delete(document)
            lines.append(f"{_text(document)} {'deleted' if was_there else 'does not exist'}")
    lines.append(
        "new pods keep default-scheduler; adopted pods keep their scheduler name until their owners make them"
        " again"
    )
    return lines


async def _adopting(
    session: Session, names: Sequence[str]
) -> tuple[Mapping[str, Document], list[SchedulingPolicy]]:
    """All policies as documents, and the named ones, by default all that adopt pods."""
    found = {name_of(each): each async for each in objects(session, f"{GROUP}/schedulingpolicies")}
    if missing := [name for name in names if name not in found]:
        raise UserError(f"no SchedulingPolicy {missing[0]}; kubectl get spol lists them")
    policies = []
    for name in names or sorted(found):
        policy = parsed(found[name])
        if isinstance(policy, str):
            if names:
                raise UserError(f"SchedulingPolicy {name} is not accepted: {policy}")
        elif adopt_of(policy) is not None:
            policies.append(policy)
        elif names:
            raise UserError(f"SchedulingPolicy {name} adopts no pods: set spec.scheduling.adopt")
    if not policies:
        raise UserError("no SchedulingPolicy adopts pods: set spec.scheduling.adopt in one")
    return found, policies


def _text(document: Document) -> str:
    group = document["apiVersion"].partition("/")[0]
    return f"{document['kind'].lower()}.{group}/{document['metadata']['name']}"
