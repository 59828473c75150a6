"""The API server with all that stands beside its built-in resources: definitions, tables, discovery, OpenAPI.

``server`` and ``api`` know these only by their seams; here they are put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.definitions.definitions import Definitions
from roadstead.discovery.discovery import Discovery
from roadstead.discovery.openapi import OpenApi
from roadstead.server.server import Server
from roadstead.server.tables import Tables

if TYPE_CHECKING:
    from roadstead.store.api import Api


def extended_server(api: Api, token: str) -> Server:
    """A server of an ``Api`` that knows no definitions yet."""
    Definitions(api)
    return Server(api, token, tables=Tables(api), documents=[Discovery(api.registry), OpenApi(api)])
