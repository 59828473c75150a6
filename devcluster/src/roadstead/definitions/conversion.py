"""Converts custom resources between the versions of their definition, by a webhook where it names one.

Source: apiextensions-apiserver v1.36 ``pkg/apiserver/conversion`` and ``customresource_handler.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from roadstead.kinds.checks.metadata import annotation_key_causes, label_causes
from roadstead.store.progress import Question
from roadstead.store.webhook_addresses import UnreachableError, address_of
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj

#: Seconds in which a webhook answers.
TIMEOUT_S = 30
_VERSIONS = ("v1", "v1beta1")
_GO_TYPES = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


class Conversion:
    """How the resources of one definition become those of another version.

    Args:
        api: asks the webhook, and knows Services.
        definition: a CustomResourceDefinition that was accepted.
    """

    def __init__(self, api: Api, definition: Obj) -> None:
        conversion = definition["spec"]["conversion"]
        self._api = api
        self._webhook: Obj | None = conversion["webhook"] if conversion["strategy"] == "Webhook" else None

    @property
    def asks(self) -> bool:
        """Whether a webhook converts."""
        return self._webhook is not None

    def __call__(self, obj: Obj, api_version: str) -> Obj:
        """A resource in another version; the resource itself where a webhook converts and cannot be asked.

        Raises:
            StatusError: 500, the webhook cannot be called, or has not converted.
            Unanswered: the webhook is to be asked.
        """
        if self._webhook is None:
            return copied({**obj, "apiVersion": api_version})
        if self._api.progress is None:
            return obj
        return self._answered(self._webhook, obj, api_version)

    def _answered(self, webhook: Obj, obj: Obj, api_version: str) -> Obj:
        assert self._api.progress is not None
        what = f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']}"
        try:
            url, port = address_of(self._api, webhook["clientConfig"], TIMEOUT_S)
        except UnreachableError as error:
            raise _failed(f"{what} failed: {error}") from error
        meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
        question = Question(
            url,
            port,
            webhook["clientConfig"].get("caBundle") or "",
            TIMEOUT_S,
            next(one for one in webhook["conversionReviewVersions"] if one in _VERSIONS),
            mutating=False,
            request=orjson.dumps({"desiredAPIVersion": api_version, "objects": [{**obj, "metadata": meta}]}),
            review="ConversionReview",
        )
        (answer,) = self._api.progress.answered([question])
        if answer.fault:
            raise _failed(f"{what} failed: {answer.fault}")
        objects = answer.response.get("convertedObjects") or []
        if len(objects) != 1:
            raise _failed(f"{what} returned {len(objects)} objects, expected 1")
        found: Obj = copied(objects[0])
        if not found.get("kind"):
            raise _failed(f"Object 'Kind' is missing in '{orjson.dumps(found).decode()}'")
        for name, wanted, given in (
            ("groupVersion", api_version, found.get("apiVersion", "")),
            ("kind", obj["kind"], found.get("kind", "")),
        ):
            if wanted != given:
                why = f"invalid {name} (expected {wanted}, received {given})"
                raise _failed(f"{what} returned invalid object at index 0: {why}")
        given = found.get("metadata")
        for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
            before, after = (of.get(name, "") if isinstance(of, dict) else "" for of in (meta, given))
            if before != after:
                raise _failed(
                    f"{what} returned invalid object: must have the same {shown}: {before} != {after}"
                )
        if why := _restore(found, obj["metadata"]):
            raise _failed(f"{what} returned invalid metadata: {why}")
        return found


def _restore(converted: Obj, before: Obj) -> str:
    """Give a converted resource its metadata back but for labels and annotations; why they are not valid."""
    if "metadata" not in converted:
        return "missing metadata in converted object"
    given = converted["metadata"]
    if not isinstance(given, dict):
        return f"invalid metadata of type {_go_type(given)} in converted object"
    meta = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    for name, at, causes in (
        ("labels", "metadata.labels", label_causes),
        ("annotations", "metadata.annotation", annotation_key_causes),
    ):
        entries = given.get(name)
        if entries is None:
            continue
        if not isinstance(entries, dict):
            return f"invalid metadata.{name} of type {_go_type(entries)} in converted object"
        for key, value in entries.items():
            if not isinstance(value, str):
                return (
                    f"metadata.{name}[{key}] must be a string, but is {_go_type(value)} in converted object"
                )
        if entries != (before.get(name) or {}) and (found := causes(entries, at)):
            texts = [f"{one.field}: {one.message}" for one in found]
            return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        meta[name] = entries
    converted["metadata"] = copied(meta)
    return ""


def _go_type(value: Any) -> str:
    return _GO_TYPES[type(value)]


def _failed(message: str) -> StatusError:
    return StatusError(500, "", message)
