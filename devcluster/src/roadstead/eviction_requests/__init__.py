"""Serves lifecycle.k8s.io: evictions by request, as with Kubernetes 1.37's gate EvictionRequestAPI.

Off by default, as on a real server. The controllers follow pull requests: Kubernetes 1.37.0 serves the API
without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.eviction_requests.controller import EvictionRequestController
from roadstead.eviction_requests.imperative_evictor import ImperativeEvictor
from roadstead.eviction_requests.kinds import (
    EVICTION_REQUESTS,
    EVICTIONS,
    EvictionRequests,
    Evictions,
    pod_kinds,
)

if TYPE_CHECKING:
    from roadstead.controllers.context import Context


def offer_eviction_requests(context: Context, *, controllers: bool = True) -> None:
    """Start to serve the API.

    Args:
        context: the context of controllers.
        controllers: run the controllers as well.
    """
    api = context.api
    api.kinds[EVICTION_REQUESTS.key] = EvictionRequests()
    api.kinds[EVICTIONS.key] = Evictions(lambda: context.now)
    pod_kinds(api.kinds)
    api.registry.add(EVICTION_REQUESTS)
    api.registry.add(EVICTIONS)
    if controllers:
        EvictionRequestController(context).start()
        ImperativeEvictor(context).start()
