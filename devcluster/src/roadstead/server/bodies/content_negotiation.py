"""Selects the media type of a response by Accept headers, and decodes bodies of requests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from roadstead.server.bodies.protobuf_bodies import MEDIA_TYPE, decoded_protobuf
from roadstead.values.status_errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Sequence

JSON = "application/json"
_META = "meta.k8s.io"
_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class Form:
    """The media type of a response.

    Attributes:
        shape: "" for the objects themselves, "Table", or "PartialObjectMetadata" (also of lists).
        version: of the group meta.k8s.io, where there is a shape.
        media: "json", "yaml" or "protobuf".
    """

    shape: str = ""
    version: str = "v1"
    media: str = "json"


@lru_cache(maxsize=256)
def accepted(header: str, *, protobuf: bool = False) -> Form:
    """The first supported form in an Accept header.

    Args:
        header: the header.
        protobuf: whether Protocol Buffers are supported, as for objects of built-in kinds.

    Raises:
        StatusError: 406, if none is supported.
    """
    if header in ("", "*/*", JSON):
        return Form()
    for clause in header.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        given = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media == MEDIA_TYPE and protobuf and not given.get("as", "").startswith("Table"):
            if "as" not in given:
                return Form(media="protobuf")
            if given["as"] in _FORMS and given.get("g") == _META and given.get("v") == "v1":
                return Form(given["as"].removesuffix("List"), "v1", "protobuf")
        if media in ("*/*", "application/*", JSON) or media in ("application/yaml", "text/yaml"):
            kind = "yaml" if media.endswith("yaml") else "json"
            shape = given.get("as", "")
            if not shape:
                return Form(media=kind)
            if shape in _FORMS and given.get("g") == _META and given.get("v") in ("v1", "v1beta1"):
                return Form(shape.removesuffix("List"), given["v"], kind)
    known = [JSON, "application/yaml", *([MEDIA_TYPE] if protobuf else [])]
    raise not_acceptable(known)


def not_acceptable(known: Sequence[str]) -> StatusError:
    """406: the client accepts none of the known media types."""
    return StatusError(
        406, "NotAcceptable", f"only the following media types are accepted: {', '.join(known)}"
    )


def repeated_keys(body: bytes) -> list[str]:
    """Paths of keys that occur twice in one object of a JSON body; empty for other bodies."""
    found: list[str] = []

    def collected(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                result.setdefault(_TWICE, []).append(key)
            result[key] = value
        return result

    def walk(value: Any, at: str) -> None:
        if isinstance(value, dict):
            found.extend(f"{at}{key}" for key in value.pop(_TWICE, ()))
            for key, item in value.items():
                walk(item, f"{at}{key}.")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                walk(item, f"{at.removesuffix('.')}[{index}].")

    try:
        walk(json.loads(body, object_pairs_hook=collected), "")
    except ValueError:
        return []
    return found


_TWICE = "\0twice"


def content_type(header: str) -> str:
    """The media type of a body, without its parameters."""
    return header.partition(";")[0].strip().lower()


def unsupported(given: str, supported: tuple[str, ...]) -> StatusError:
    """415: the media type of the body is not supported."""
    return StatusError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(supported)}" + ("" if given else " (no Content-Type was given)"),
    )


def decoded(body: bytes, media: str) -> Any:
    """A body as a JSON value.

    Raises:
        StatusError: 400, if it is malformed; 415, if its media type is not supported.
    """
    if media in ("", JSON):
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    if media in ("application/yaml", "text/yaml", "application/apply-patch+yaml"):
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            pass
        try:
            return yaml.load(body, Loader=yaml.CSafeLoader)
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding YAML: {error}") from error
    if media == MEDIA_TYPE:
        return decoded_protobuf(body)
    raise unsupported(media, (JSON, "application/yaml", MEDIA_TYPE))
