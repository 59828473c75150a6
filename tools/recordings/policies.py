"""A DeschedulerPolicy as a policy of ours that decides the same, as ``plimsoll convert`` makes it."""

from collections.abc import Mapping
from typing import Any

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.migration.documents import SourceDocument
from plimsoll.migration.rebalancing_conversion import rebalancing_policies
from plimsoll.migration.report import ReportWriter


def policy_of(document: Mapping[str, Any]) -> SchedulingPolicy | None:
    """The policy that ``plimsoll convert --keep-behaviour`` makes; None where nothing would ever run.

    It is in mode Enforce, as descheduler is.

    Raises:
        ConfigurationError: It cannot be converted.
        ValidationError: What it becomes is no policy.
    """
    report = ReportWriter(SourceDocument("recorded", document))
    policies = rebalancing_policies(document, report, keep=True)
    if not policies:
        return None
    ((name, spec),) = policies
    spec["rebalancing"]["mode"] = "Enforce"
    wire = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    return SchedulingPolicy.from_wire(wire)
