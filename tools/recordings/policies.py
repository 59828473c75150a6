"""DeschedulerPolicies as policies of ours that decide the same, as ``plimsoll convert`` makes them."""

from collections.abc import Mapping
from typing import Any

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.migration.documents import SourceDocument
from plimsoll.migration.rebalancing_conversion import rebalancing_policies
from plimsoll.migration.report import ReportWriter


def policies_of(document: Mapping[str, Any]) -> list[tuple[SchedulingPolicy, tuple[int, ...]]]:
    """The policies that ``plimsoll convert --keep-behaviour`` makes, and the profiles that each is made of.

    They are in mode Enforce, as descheduler is.

    Raises:
        ConfigurationError: It cannot be converted.
        ValidationError: What it becomes is no policy.
    """
    report = ReportWriter(SourceDocument("recorded", document))
    policies = []
    for made in rebalancing_policies(document, report, keep=True):
        made.spec["rebalancing"]["mode"] = "Enforce"
        wire = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": made.name},
            "spec": made.spec,
        }
        policies.append((SchedulingPolicy.from_wire(wire), made.profiles))
    return policies
