"""Evaluates admission policies with the library that the development cluster validates with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from roadstead.definitions import cel_library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.manifests import Obj

ORDINARY = ["system:authenticated", "team-a"]


@dataclass(frozen=True)
class Admission:
    """A policy, evaluated as an API server does: conditions, variables in their order, validations."""

    policy: Obj

    def concerns(self, user: str, groups: list[str] = ORDINARY) -> bool:
        """Whether it judges what this user writes, as far as its conditions are about users."""
        known = {"request": {"userInfo": {"username": user, "groups": groups}}}
        return all(
            self._evaluated(each["expression"], known) for each in self.policy["spec"]["matchConditions"]
        )

    def refusal(
        self, obj: Obj, old: Obj | None = None, groups: list[str] = ORDINARY, user: str = "somebody"
    ) -> str:
        """The message, "" when the request is admitted."""
        known: dict[str, Any] = {
            "object": obj,
            "oldObject": old,
            "request": {"userInfo": {"username": user, "groups": groups}},
        }
        spec = self.policy["spec"]
        if not all(self._evaluated(each["expression"], known) for each in spec["matchConditions"]):
            return ""
        variables: dict[str, Any] = {}
        for each in spec["variables"]:
            variables[each["name"]] = self._evaluated(each["expression"], {**known, "variables": variables})
        known["variables"] = variables
        for each in spec["validations"]:
            if not self._evaluated(each["expression"], known):
                return str(self._evaluated(each["messageExpression"], known))
        return ""

    @staticmethod
    def _evaluated(expression: str, known: Mapping[str, Any]) -> Any:
        environment = cel.NewEnv(
            variables=dict.fromkeys(known, cel.Type.DYN),
            functions=cel_library.evaluated(),
            extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        )
        answer = environment.compile(expression).eval(data=dict(known))
        assert answer.type() != cel.Type.ERROR, answer.value()
        return answer.plain_value()
