"""The composition root: builds every object once and passes it down."""

import plimsoll.kube  # noqa: F401 - before kopf, which imports kubernetes-asyncio (plimsoll.kube.session.piecemeal)
