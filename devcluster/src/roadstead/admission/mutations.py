"""Applies MutatingAdmissionPolicies: configurations that are merged, and JSON patches.

The in-tree steps of admission (priority, default tolerations) come after, so expressions do not see their
fields.

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
    decoded,
    details_of,
    in_version,
    internal,
    is_excluded,
    kind_of,
    known_of,
    namespace_of,
    parameters,
    seen,
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


@dataclass(slots=True)
class MutatingPolicies:
    """The mutating policies of a cluster.

    Args:
        api: where policies, bindings and parameters are.
    """

    api: Api

    def mutations(self, attempt: Attempt) -> Iterator[_Invocation]:
        """The policies that concern a write: once for each binding and object of parameters."""
        if not self.api.store.collection(_BINDINGS).entries or attempt.obj is None or is_excluded(attempt):
            return
        namespace = namespace_of(self.api, attempt)
        bindings = self.api.list(_BINDINGS)
        for policy in self.api.list(_POLICIES):
            found = seen(self.api, policy["spec"].get("matchConstraints"), attempt, namespace)
            if found is None:
                continue
            for binding in bindings:
                spec = binding["spec"]
                if spec.get("policyName") != policy["metadata"]["name"]:
                    continue
                if seen(self.api, spec.get("matchResources"), attempt, namespace) is None:
                    continue
                try:
                    for params in parameters(self.api, policy, binding, attempt):
                        yield _Invocation(self.api, policy, binding, params, found.resource)
                except ParamsError as error:
                    fault = f"failed to configure binding: {error}"
                    yield _Invocation(self.api, policy, binding, None, found.resource, fault)


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A policy with one of its bindings and one object of parameters.

    Attributes:
        resource: in the version that the policy names.
        fault: why it cannot run.
    """

    api: Api
    policy: Obj
    binding: Obj
    params: Obj | None
    resource: Resource
    fault: str = ""

    @property
    def repeats(self) -> bool:
        """As of ``Mutation``."""
        return bool(self.policy["spec"].get("reinvocationPolicy") == "IfNeeded")

    def applied(self, attempt: Attempt) -> Attempt:
        """As of ``Mutation``.

        Raises:
            StatusError: 403, if a policy whose ``failurePolicy`` is Fail cannot be applied.
        """
        fault = self.fault
        try:
            if not fault:
                found = in_version(self.api, attempt, self.resource)
                changed = dataclasses.replace(found, obj=self._changed(found))
                obj = in_version(self.api, changed, attempt.resource).obj
                return dataclasses.replace(attempt, obj=obj)
        except FailedError as error:
            fault = str(error)
        if self.policy["spec"].get("failurePolicy") == "Ignore":
            return attempt
        names = (self.policy["metadata"]["name"], self.binding["metadata"]["name"])
        why = f"policy '{names[0]}' with binding '{names[1]}' denied request: {fault}"
        raise _refusal(attempt, why, "Forbidden" if self.fault else "Invalid")

    def _changed(self, attempt: Attempt) -> Obj | None:
        """The object after a policy's mutations.

        Raises:
            FailedError: an expression fails, or its value cannot be applied.
            StatusError: 500, if a patch makes something that is not of the kind, as upstream.
        """
        spec, obj = self.policy["spec"], attempt.obj
        known = {**known_of(self.api, attempt, namespace_of(self.api, attempt)), "params": self.params}
        if not Evaluation(known, spec.get("variables") or ()).meets(spec):
            return obj
        kind, resource = kind_of(self.api, attempt)
        for mutation in spec.get("mutations") or ():
            evaluation = Evaluation({**known, "object": obj}, spec.get("variables") or ())
            if mutation["patchType"] == "JSONPatch":
                obj = _patched(obj, evaluation.value(mutation["jsonPatch"]["expression"]))
            else:
                config = evaluation.value(mutation["applyConfiguration"]["expression"])
                obj = _merged(obj, config, kind.schema(resource))
            obj = _typed(obj, kind, resource)
            kind.default(obj)
        return obj


def _refusal(attempt: Attempt, why: str, reason: str) -> StatusError:
    """403 with the policy's sentence."""
    return StatusError(403, reason, why, {"name": attempt.name, **details_of(attempt, why)})


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
    typed, strays = decoded(obj, kind, resource)
    if strays:
        raise internal(f'strict decoding error: unknown field "{strays[0]}"')
    return typed


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
