"""Puts an API server together: kinds, definitions of custom resources, discovery, tables.

``server`` and ``store`` know these by protocols only.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from roadstead.definitions.definitions import Definitions
from roadstead.discovery.discovery import Discovery
from roadstead.discovery.openapi import OpenApi
from roadstead.kinds import events
from roadstead.kinds.builtin import built_in_kinds
from roadstead.server.server import Server
from roadstead.server.tables import Tables
from roadstead.store.api import Api

_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}


def utc_now() -> dt.datetime:
    """The time of this machine."""
    return dt.datetime.now(dt.UTC)


def built_in_api(clock: Callable[[], dt.datetime] = utc_now) -> Api:
    """An ``Api`` of the built-in kinds, with the objects that every cluster has.

    Args:
        clock: the time, with zone.
    """
    api = Api(built_in_kinds(), converters={"events": events.converted}, clock=clock)
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        api.create("namespaces", {"metadata": {"name": name}})
    for name, value in _SYSTEM_PRIORITIES.items():
        api.create(
            "priorityclasses.scheduling.k8s.io",
            {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]},
        )
    return api


def extended_server(api: Api, token: str) -> Server:
    """A server of an ``Api`` that knows no definitions yet."""
    Definitions(api)
    return Server(api, token, tables=Tables(api), documents=[Discovery(api.registry), OpenApi(api)])
