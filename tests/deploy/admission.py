"""Evaluates admission policies as the development cluster does, without a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.admission.expressions import Evaluation
from roadstead.admission.validations import broken_validations

if TYPE_CHECKING:
    from deploy.manifests import Obj

ORDINARY = ["system:authenticated", "team-a"]


@dataclass(frozen=True)
class Admission:
    """A ValidatingAdmissionPolicy."""

    policy: Obj

    def concerns(self, user: str, groups: list[str] = ORDINARY) -> bool:
        """Whether it judges what this user writes, as far as its conditions are about users."""
        known = {"request": {"userInfo": {"username": user, "groups": groups}}}
        return Evaluation(known).meets(self.policy["spec"])

    def refusal(
        self, obj: Obj, old: Obj | None = None, groups: list[str] = ORDINARY, user: str = "somebody"
    ) -> str:
        """The message, "" when the request is admitted."""
        request = {"userInfo": {"username": user, "groups": groups}}
        broken = broken_validations(self.policy, {"object": obj, "oldObject": old, "request": request})
        return broken[0].message if broken else ""
