"""The API server with all that stands beside its built-in resources: definitions, tables, discovery, OpenAPI.

``server`` and ``api`` know these only by their seams; here they are put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.devcluster.crds import Definitions
from plimsoll.devcluster.discovery import Discovery
from plimsoll.devcluster.openapi import OpenApi
from plimsoll.devcluster.server import Server
from plimsoll.devcluster.tables import Tables

if TYPE_CHECKING:
    from plimsoll.devcluster.api import Api


def extended_server(api: Api, token: str) -> Server:
    """A server of an ``Api`` that knows no definitions yet."""
    Definitions(api)
    return Server(api, token, tables=Tables(api), documents=[Discovery(api.registry), OpenApi(api)])
