"""deploy/components/adoption restricts what the watchdog writes beyond RBAC."""

from __future__ import annotations

import copy

import pytest
import yaml

from deploy.admission import Admission
from deploy.manifests import DEPLOY, Obj, of_kind

FILE = DEPLOY / "components/adoption/only_withdrawing.yaml"
(POLICY,) = of_kind(list(yaml.safe_load_all(FILE.read_text(encoding="utf-8"))), "ValidatingAdmissionPolicy")
WATCHDOG = "system:serviceaccount:plimsoll:plimsoll-watchdog"
REFUSED = "the watchdog may set the condition Ready of a policy to False, and nothing else"


def condition(kind: str, status: str, reason: str = "Serving") -> Obj:
    """A condition."""
    return {"type": kind, "status": status, "reason": reason, "message": ""}


ACCEPTED, READY = condition("Accepted", "True"), condition("Ready", "True")
WITHDRAWN = condition("Ready", "False", "NoLeader")


def policy(*conditions: Obj, **status: object) -> Obj:
    """A policy with a status."""
    return {"metadata": {"name": "web"}, "spec": {}, "status": {"conditions": [*conditions], **status}}


@pytest.mark.parametrize("before", [READY, WITHDRAWN])
def test_the_watchdog_may_withdraw(before: Obj) -> None:
    new, old = policy(ACCEPTED, WITHDRAWN, totals={"moved": 1}), policy(ACCEPTED, before, totals={"moved": 1})

    assert Admission(POLICY).refusal(new, old, user=WATCHDOG) == ""


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (policy(ACCEPTED, READY), policy(ACCEPTED, WITHDRAWN)),
        (policy(ACCEPTED), policy(ACCEPTED, READY)),
        (policy(condition("Accepted", "False"), WITHDRAWN), policy(ACCEPTED, READY)),
        (policy(ACCEPTED, WITHDRAWN, condition("More", "True")), policy(ACCEPTED, READY)),
        (policy(ACCEPTED, WITHDRAWN, totals={"moved": 9}), policy(ACCEPTED, READY)),
        (policy(ACCEPTED, WITHDRAWN), policy(ACCEPTED, READY, totals={"moved": 9})),
        (policy(ACCEPTED, WITHDRAWN, totals={"moved": 9}), policy(ACCEPTED, READY, totals={"moved": 8})),
    ],
)
def test_the_watchdog_may_do_nothing_else(new: Obj, old: Obj) -> None:
    """Others are judged by others."""
    refusal = Admission(POLICY).refusal(copy.deepcopy(new), old, user=WATCHDOG)

    assert refusal == REFUSED
    assert Admission(POLICY).refusal(new, old) == ""
