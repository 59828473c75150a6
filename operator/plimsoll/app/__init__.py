"""The composition root: builds every object once and passes it down."""

import plimsoll.kube  # before kopf, which imports kubernetes-asyncio (plimsoll.kube.piecemeal)
