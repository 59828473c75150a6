"""lifecycle.k8s.io: evictions by request, as with the feature gate EvictionRequestAPI of Kubernetes 1.37.

Off unless it is asked for, as on a real server. With controllers it does what kube-controller-manager is
meant to do for it; Kubernetes 1.37.0 serves the API, its controllers were still being reviewed then.
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
    """Serve the API from now on.

    Args:
        context: what controllers share.
        controllers: act on requests, too.
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
