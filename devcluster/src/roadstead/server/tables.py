"""Renders ``meta.k8s.io`` tables, which ``kubectl get`` prints.

The server calls ``Tables`` if a client requests ``as=Table``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roadstead.definitions.custom_kind import CustomKind
from roadstead.schemas import json_paths
from roadstead.schemas.field_errors import quoted
from roadstead.table_columns import devices, others, pods, workloads
from roadstead.table_columns.columns import AGE, NAME, Cell, Column, since

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from roadstead.store.api import Api
    from roadstead.values.resources import Obj, Resource

Columns = tuple[Column, ...]

BUILT_IN: dict[str, Columns] = {
    "pods": pods.PODS,
    "nodes": pods.NODES,
    "deployments.apps": workloads.DEPLOYMENTS,
    "replicasets.apps": workloads.REPLICA_SETS,
    "replicationcontrollers": workloads.REPLICATION_CONTROLLERS,
    "statefulsets.apps": workloads.STATEFUL_SETS,
    "daemonsets.apps": workloads.DAEMON_SETS,
    "controllerrevisions.apps": workloads.CONTROLLER_REVISIONS,
    "jobs.batch": workloads.JOBS,
    "cronjobs.batch": workloads.CRON_JOBS,
    "poddisruptionbudgets.policy": workloads.BUDGETS,
    "configmaps": others.CONFIG_MAPS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": others.WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": others.WEBHOOKS,
    "secrets": others.SECRETS,
    "serviceaccounts": others.SERVICE_ACCOUNTS,
    "resourcequotas": others.QUOTAS,
    "ingresses.networking.k8s.io": others.INGRESSES,
    "ingressclasses.networking.k8s.io": others.INGRESS_CLASSES,
    "certificatesigningrequests.certificates.k8s.io": others.SIGNING_REQUESTS,
    "horizontalpodautoscalers.autoscaling": others.AUTOSCALERS,
    "leases.coordination.k8s.io": others.LEASES,
    "namespaces": others.NAMESPACES,
    "persistentvolumeclaims": others.CLAIMS,
    "persistentvolumes": others.VOLUMES,
    "services": others.SERVICES,
    "endpoints": others.ENDPOINTS,
    "compositepodgroups.scheduling.k8s.io": others.POD_GROUPS,
    "podgroups.scheduling.k8s.io": others.POD_GROUPS,
    "priorityclasses.scheduling.k8s.io": others.PRIORITY_CLASSES,
    "workloads.scheduling.k8s.io": devices.NAME_AND_AGE,
    "storageclasses.storage.k8s.io": others.STORAGE_CLASSES,
    "events": others.EVENTS,
    "events.events.k8s.io": others.EVENTS,
    "clusterrolebindings.rbac.authorization.k8s.io": others.BINDINGS,
    "rolebindings.rbac.authorization.k8s.io": others.BINDINGS,
    "networkpolicies.networking.k8s.io": others.NETWORK_POLICIES,
    "runtimeclasses.node.k8s.io": others.RUNTIME_CLASSES,
    "volumeattachments.storage.k8s.io": others.ATTACHMENTS,
    "csinodes.storage.k8s.io": others.CSI_NODES,
    "deviceclasses.resource.k8s.io": devices.NAME_AND_AGE,
    "resourceclaims.resource.k8s.io": devices.RESOURCE_CLAIMS,
    "resourceclaimtemplates.resource.k8s.io": devices.NAME_AND_AGE,
    "resourceslices.resource.k8s.io": devices.RESOURCE_SLICES,
}
_AGE_OF_CUSTOM = Column("Age", AGE.cell, type="date")


class Tables:
    """Renders objects as a Table.

    Args:
        api: has the columns of custom resources and the time.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    def __call__(
        self, resource: Resource, objects: Sequence[Obj], *, include_object: str, columns: bool, version: str
    ) -> Obj:
        """A Table without list metadata; see ``server.TableRenderer``."""
        shown, now = self._columns(resource), self._api.clock()
        rows = []
        for obj in objects:
            row: Obj = {"cells": [column.cell(obj, now) for column in shown]}
            if include_object == "Object":
                row["object"] = obj
            elif include_object != "None":
                row["object"] = {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": f"meta.k8s.io/{version}",
                    "metadata": obj["metadata"],
                }
            rows.append(row)
        return {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": {},
            "columnDefinitions": [column.definition for column in shown] if columns else [],
            "rows": rows,
        }

    def _columns(self, resource: Resource) -> Columns:
        kind = self._api.kind(resource)
        if not isinstance(kind, CustomKind):
            return BUILT_IN.get(resource.key, others.NAME_AND_CREATION)
        given = kind.versions[resource.api_version].columns
        return (NAME, *map(custom_column, given)) if given else (NAME, _AGE_OF_CUSTOM)


def custom_column(given: Obj) -> Column:
    """A printer column of a definition."""
    path = given["jsonPath"]
    description = given.get("description") or (
        f"Custom resource definition column (in JSONPath format): {path}"
    )
    return Column(
        given["name"],
        _custom_cell(path, given["type"]),
        given["type"],
        given.get("format", ""),
        given.get("priority", 0),
        description,
    )


def _custom_cell(path: str, kind: str) -> Cell:
    def cell(obj: Obj, now: dt.datetime) -> Any:
        found = json_paths.values(obj, path)
        return None if not found else custom_value(found[0], kind, now)

    return cell


def custom_value(value: Any, kind: str, now: dt.datetime) -> Any:
    """A value as a column of a type shows it, None for a value of another type."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match kind:
        case "string":
            if value is None:
                return None
            return value if isinstance(value, str) else quoted(value)
        case "integer":
            return int(value) if number else None
        case "number":
            return _shortest(value) if number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            if not isinstance(value, str):
                return None
            age = since(value, now)
            return "<invalid>" if age == "<unknown>" and value else age
    return None


def _shortest(number: float) -> float:
    """A number as Go encodes it: without a fraction if it is whole."""
    return int(number) if float(number).is_integer() else number
