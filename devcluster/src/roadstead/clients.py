"""Describes a running cluster to its clients: kubeconfig, addresses, token."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A cluster that answers.

    Attributes:
        kubeconfig: the file that names it.
        simulated: whether it is roadstead, with simulated nodes, and not a cluster that was given.
    """

    kubeconfig: Path
    simulated: bool = True

    @property
    def url(self) -> str:
        """The URL of the current context."""
        server: str = self._cluster()["server"]
        return server

    @property
    def plain_url(self) -> str:
        """The same server without TLS; of roadstead only."""
        server: str = self._cluster("-http")["server"]
        return server

    @property
    def token(self) -> str:
        """The bearer token of the first user."""
        token: str = self._config()["users"][0]["user"]["token"]
        return token

    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        return config

    def _cluster(self, suffix: str = "") -> dict[str, Any]:
        config = self._config()
        wanted = config["current-context"] + suffix
        context = next(one["context"] for one in config["contexts"] if one["name"] == wanted)
        cluster: dict[str, Any] = next(
            one["cluster"] for one in config["clusters"] if one["name"] == context["cluster"]
        )
        return cluster
