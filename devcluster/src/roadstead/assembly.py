"""Assembles an API server: kinds, definitions of custom resources, discovery, tables.

``server`` and ``store`` refer to these through protocols only.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from roadstead.admission.chain import AdmissionChain
from roadstead.admission.expressions import policy_fault
from roadstead.admission.mutations import MutatingPolicies
from roadstead.admission.validations import ValidatingPolicies
from roadstead.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from roadstead.authorization.role_based import RoleBased
from roadstead.definitions.definitions import Definitions
from roadstead.definitions.device_expressions import device_expression_fault
from roadstead.discovery.discovery import Discovery
from roadstead.discovery.openapi import OpenApi
from roadstead.kinds import events
from roadstead.kinds.builtin import built_in_kinds
from roadstead.kinds.certificates import CertificateSigningRequests
from roadstead.kinds.pod_groups import resources
from roadstead.limits.limit_ranges import LimitRanger
from roadstead.limits.quotas import QUOTAS, QuotaAdmission
from roadstead.server.request_handler import RequestHandler
from roadstead.server.server import Server
from roadstead.server.tables import Tables
from roadstead.store.api import Api
from roadstead.values.resources import Obj

#: Modes of authorization, as kube-apiserver names them.
ALWAYS_ALLOW, RBAC = "AlwaysAllow", "RBAC"
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}


def utc_now() -> dt.datetime:
    """The current time, in UTC."""
    return dt.datetime.now(dt.UTC)


def built_in_api(
    clock: Callable[[], dt.datetime] = utc_now,
    randomness: random.Random | None = None,
    *,
    pod_groups: bool = False,
    composite_groups: bool = False,
) -> Api:
    """Build an ``Api`` of the built-in kinds, with the objects that every cluster has.

    Args:
        clock: the time, with zone.
        randomness: the source of uids and generated names; None is unseeded.
        pod_groups: whether PodGroups and Workloads of scheduling.k8s.io/v1alpha2 are served.
        composite_groups: whether they, and CompositePodGroups, are served in v1alpha3 instead.
    """

    def now() -> str:  # one for all runs of a write
        return api.now()

    has_groups = pod_groups or composite_groups
    kinds = built_in_kinds(
        device_expression_fault,
        policy_fault,
        now,
        pod_groups=has_groups,
        composite_groups=composite_groups,
    )
    kinds["certificatesigningrequests.certificates.k8s.io"] = CertificateSigningRequests(now)
    api: Api = Api(kinds, converters={"events": events.converted}, clock=clock, randomness=randomness)
    for resource in resources(composites=composite_groups) if has_groups else ():
        api.registry.add(resource)

    def write_quota(quota: Obj, status: Obj) -> None:
        with api.trying(None):  # within a write that webhooks have judged
            api.update_status(QUOTAS, {**quota, "status": status})

    api.limits += [LimitRanger(), QuotaAdmission(write_quota)]
    create_built_in_objects(api)
    return api


def create_built_in_objects(api: Api) -> None:
    """Create the namespaces and priority classes that every cluster has, unless they exist."""
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        if api.find("namespaces", None, name) is None:
            api.create("namespaces", {"metadata": {"name": name}})
    for name, value in _SYSTEM_PRIORITIES.items():
        if api.find("priorityclasses.scheduling.k8s.io", None, name) is None:
            api.create(
                "priorityclasses.scheduling.k8s.io",
                {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]},
            )


def extended_handler(
    api: Api,
    token: str,
    *,
    actions: Mapping[str, Callable[[], None]] | None = None,
    token_file: Path | None = None,
    authorization: str = ALWAYS_ALLOW,
) -> RequestHandler:
    """Build a request handler with custom resources, tables, discovery and OpenAPI.

    Args:
        api: the API, which has no definitions of custom resources yet.
        token: the bearer token of its clients.
        actions: called on a POST to their path.
        token_file: further tokens, one per line.
        authorization: "AlwaysAllow" or "RBAC".
    """
    Definitions(api)
    authorizer = RoleBased(api) if authorization == RBAC else None
    if authorizer is not None:
        authorizer.create_bootstrap_roles()
        api.authorize = authorizer.reason
    judges = [authorizer] if authorizer is not None else []
    api.admission = AdmissionChain(
        [MutatingPolicies(api), MutatingWebhooks(api)],
        [*judges, ValidatingPolicies(api), ValidatingWebhooks(api)],
    )
    return RequestHandler(
        api,
        token,
        tables=Tables(api),
        documents=[Discovery(api.registry), OpenApi(api)],
        actions=actions,
        token_file=token_file,
        authorizer=authorizer,
    )


def extended_server(
    api: Api,
    token: str,
    *,
    actions: Mapping[str, Callable[[], None]] | None = None,
    token_file: Path | None = None,
    authorization: str = ALWAYS_ALLOW,
) -> Server:
    """Build a server around ``extended_handler``; the arguments are the same."""
    return Server(
        extended_handler(api, token, actions=actions, token_file=token_file, authorization=authorization)
    )
