"""Gives an operator exactly the rights of deploy/ on the named cluster, as judged by its API server."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import yaml
from kubernetes_asyncio import client, config

from deploy.manifests import NAME, documents, documents_with, of_kind, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from e2e.speaker import Speaker

#: What an overlay installs besides rights and what restricts them; the operator runs here.
PROGRAMS = ("Deployment", "Service", "PodDisruptionBudget", "CustomResourceDefinition", "SchedulingPolicy")
TOKENS = f"/api/v1/namespaces/{NAME}/serviceaccounts/{NAME}/token"


@asynccontextmanager
async def entitled(speaker: Speaker, kubeconfig: Path, overlay: str, component: str) -> AsyncIterator[str]:
    """Install the rights of an overlay and a component, "" for none; yields a token of the account.

    They are taken away at the end, with the namespace.
    """
    objects = documents_with(overlay, component) if component else documents(overlay)
    rights = [each for each in objects if each not in of_kind(objects, *PROGRAMS)]
    text = yaml.safe_dump_all(rights)
    options = (f"--kubeconfig={kubeconfig}", "-f-")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}
    run("kubectl", "apply", "--server-side", *options, given=yaml.safe_dump(namespace))
    try:
        run("kubectl", "apply", "--server-side", "--validate=strict", *options, given=text)
        wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = (await speaker.request("POST", TOKENS, wanted)).accepted()["status"]["token"]
        yield token
    finally:
        run("kubectl", "delete", "--ignore-not-found", *options, given=text)
        run("kubectl", "delete", "--ignore-not-found", *options, given=yaml.safe_dump(namespace))


async def address_of(kubeconfig: Path) -> tuple[str, ssl.SSLContext | None]:
    """The API server of a kubeconfig, and how its certificate is checked."""
    found = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=found)
    is_secure = str(found.host).startswith("https")
    return str(found.host), ssl.create_default_context(cafile=found.ssl_ca_cert) if is_secure else None
