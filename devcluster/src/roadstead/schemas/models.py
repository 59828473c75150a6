"""Reads the models of built-in kinds: the types and descriptions of their fields.

``models.json`` is generated from the OpenAPI document of the release, by way of a generated client.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TypedDict

import orjson


class Model(TypedDict):
    """A model.

    ``fields`` has type ("str", "list[V1Container]", "dict(str, str)") and description by the name in JSON.
    """

    required: list[str]
    fields: dict[str, tuple[str, str]]


@cache
def models() -> dict[str, Model]:
    """All models, by names such as "V1Pod"."""
    found: dict[str, Model] = orjson.loads(
        resources.files("roadstead.schemas").joinpath("models.json").read_bytes()
    )
    return found
