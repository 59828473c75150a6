"""Applies MutatingAdmissionPolicies: configurations that are merged, and JSON patches.

A policy that changes an object lets earlier ones with ``reinvocationPolicy: IfNeeded`` run once more. The
in-tree steps of admission (priority, default tolerations) come after, so expressions do not see their fields.

Source: apiserver v1.36 ``pkg/admission/plugin/policy/mutating``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roadstead.admission.expressions import Evaluation, FailedError
from roadstead.admission.matching import (
    GROUP,
    ParamsError,
    concerns,
    details_of,
    is_excluded,
    known_of,
    namespace_of,
    parameters,
)
from roadstead.schemas.schemas import Array, Mapping, MismatchError, Node, Struct
from roadstead.store import patches, server_side_apply
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.kinds.kind import Kind
    from roadstead.store.admission import Attempt
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj, Resource

_POLICIES = f"mutatingadmissionpolicies.{GROUP}"
_BINDINGS = f"mutatingadmissionpolicybindings.{GROUP}"


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A policy with one of its bindings and one object of parameters; ``fault``: why it cannot run."""

    policy: Obj
    binding: Obj
    params: Obj | None
    fault: str = ""


@dataclass(slots=True)
class MutatingPolicies:
    """The mutating policies of a cluster.

    Args:
        api: where policies, bindings and parameters are.
    """

    api: Api

    def mutated(self, attempt: Attempt) -> Obj | None:
        """The object as the policies change it; None where none does.

        Raises:
            StatusError: 403, if a policy whose ``failurePolicy`` is Fail cannot be applied.
        """
        if not self.api.store.collection(_BINDINGS).entries or is_excluded(attempt):
            return None
        first = attempt.obj
        namespace = namespace_of(self.api, attempt)
        ran: list[_Invocation] = []
        again: list[_Invocation] = []
        for one in self._invocations(attempt, namespace):
            before = attempt.obj
            attempt = self._applied(one, attempt, namespace)
            if attempt.obj != before:
                again = [
                    *again,
                    *(earlier for earlier in ran if earlier not in again and _repeats(earlier)),
                ]
            ran.append(one)
        for one in again:
            attempt = self._applied(one, attempt, namespace)
        return None if attempt.obj == first else attempt.obj

    def _invocations(self, attempt: Attempt, namespace: Obj | None) -> Iterator[_Invocation]:
        bindings = self.api.list(_BINDINGS)
        for policy in self.api.list(_POLICIES):
            if not concerns(policy["spec"].get("matchConstraints"), attempt, namespace):
                continue
            for binding in bindings:
                spec = binding["spec"]
                if spec.get("policyName") != policy["metadata"]["name"]:
                    continue
                if not concerns(spec.get("matchResources"), attempt, namespace):
                    continue
                try:
                    for params in parameters(self.api, policy, binding, attempt):
                        yield _Invocation(policy, binding, params)
                except ParamsError as error:
                    yield _Invocation(policy, binding, None, f"failed to configure binding: {error}")

    def _applied(self, one: _Invocation, attempt: Attempt, namespace: Obj | None) -> Attempt:
        fault = one.fault
        try:
            if not fault:
                return dataclasses.replace(attempt, obj=self._changed(one, attempt, namespace))
        except FailedError as error:
            fault = str(error)
        if one.policy["spec"].get("failurePolicy") == "Ignore":
            return attempt
        names = (one.policy["metadata"]["name"], one.binding["metadata"]["name"])
        why = f"policy '{names[0]}' with binding '{names[1]}' denied request: {fault}"
        raise _refusal(attempt, why, "Forbidden" if one.fault else "Invalid")

    def _changed(self, one: _Invocation, attempt: Attempt, namespace: Obj | None) -> Obj | None:
        """The object after a policy's mutations.

        Raises:
            FailedError: an expression fails, or its value cannot be applied.
            StatusError: 500, if a patch makes something that is not of the kind, as upstream.
        """
        spec, obj = one.policy["spec"], attempt.obj
        known = {**known_of(attempt, namespace), "params": one.params}
        if not Evaluation(known, spec.get("variables") or ()).meets(spec):
            return obj
        kind = self.api.kind(attempt.resource)
        for mutation in spec.get("mutations") or ():
            evaluation = Evaluation({**known, "object": obj}, spec.get("variables") or ())
            if mutation["patchType"] == "JSONPatch":
                obj = _patched(obj, evaluation.value(mutation["jsonPatch"]["expression"]))
            else:
                config = evaluation.value(mutation["applyConfiguration"]["expression"])
                obj = _merged(obj, config, kind.schema(attempt.resource))
            obj = _typed(obj, kind, attempt.resource)
            kind.default(obj)
        return obj


def _refusal(attempt: Attempt, why: str, reason: str) -> StatusError:
    """403 with the policy's sentence."""
    return StatusError(403, reason, why, {"name": attempt.name, **details_of(attempt, why)})


def _repeats(one: _Invocation) -> bool:
    return bool(one.policy["spec"].get("reinvocationPolicy") == "IfNeeded")


def _patched(obj: Any, operations: Any) -> Any:
    """The object after a JSON patch; one whose test fails changes nothing."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise FailedError("type mismatch: JSONPatchType.expression should evaluate to array")
    try:
        return patches.json_patch(copied(obj), copied(operations))
    except patches.TestFailedError:
        return obj
    except StatusError as error:
        raise FailedError(f"JSON Patch: {error.message.rpartition('our request: ')[2]}") from error


def _merged(obj: Any, config: Any, schema: Node) -> Any:
    """The object with a configuration merged over it."""
    if not isinstance(config, dict):
        raise FailedError("type mismatch: ApplyConfiguration.expression should evaluate to Object")
    try:
        strays: list[str] = []
        schema.taken(config, strays)
        server_side_apply.check(config, schema)
        why = f".{strays[0]}: field not declared in schema" if strays else ""
    except (MismatchError, StatusError) as error:
        why = str(error).removeprefix("failed to create typed patch object: ")
    if why:
        raise FailedError(f"error applying patch: failed to convert patch object to typed object: {why}")
    atomic = _atomic(config, schema, "")
    if atomic:
        why = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomic}"
        raise FailedError(f"error applying patch: {why}")
    return server_side_apply.merged(obj, config, schema)


def _typed(obj: Any, kind: Kind, resource: Resource) -> Obj:
    """The result of a mutation as an object of its kind."""
    try:
        typed, strays = kind.decode(obj, resource)
    except StatusError as error:
        raise _internal(error.message.partition("cannot be handled as a ")[2].partition(": ")[2]) from error
    if strays:
        raise _internal(f'strict decoding error: unknown field "{strays[0]}"')
    return typed


def _internal(why: str) -> StatusError:
    return StatusError(
        500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]}
    )


def _atomic(value: Any, node: Node, path: str) -> str:
    """The path of the first list, map or struct in a configuration that has one owner; "" without one."""
    if isinstance(value, list):
        if not isinstance(node, Array) or node.atomic:
            return path
        return next(filter(None, (_atomic(one, node.items, f"{path}[]") for one in value)), "")
    if isinstance(value, dict):
        if node.atomic and path:
            return path
        for key, item in value.items():
            inner = (
                node.fields.get(key)
                if isinstance(node, Struct)
                else node.values
                if isinstance(node, Mapping)
                else None
            )
            found = _atomic(item, inner, f"{path}.{key}") if inner is not None else ""
            if found:
                return found
    return ""
