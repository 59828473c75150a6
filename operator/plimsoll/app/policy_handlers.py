"""Passes changes of SchedulingPolicies from kopf to the policy controller."""

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

import kopf

GROUP, VERSION, PLURAL = "plimsoll.dev", "v1alpha1", "schedulingpolicies"


class PolicySink(Protocol):
    """Takes policies."""

    def set(self, document: Mapping[str, Any]) -> Awaitable[None]:
        """A policy was added or changed."""

    def remove(self, name: str) -> Awaitable[None]:
        """A policy is gone."""


def register(registry: kopf.OperatorRegistry, policies: PolicySink) -> None:
    """Enter the handler. Raw events: nothing is written into the user's object, no finalizer blocks it."""

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def policy_changed(event: kopf.RawEvent, name: str | None, **_: Any) -> None:
        if event["type"] == "DELETED":
            await policies.remove(name or "")
        else:
            await policies.set(dict(event["object"]))
