"""Carries out writes received over HTTP: create and update, patches, subresources, deletions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from roadstead.authorization.service_account_tokens import issued
from roadstead.server.access_reviews import review
from roadstead.server.bodies.content_negotiation import decoded, unsupported
from roadstead.server.write_options import APPLY, BODIES, delete_options, typed, write_options
from roadstead.server.write_requests import (
    STRATEGIC_PATCH,
    SentRequest,
    WriteResult,
    check_name,
    sent_object,
    settle_namespace,
    stray_field_warnings,
    success,
    verb_of,
)
from roadstead.store import managed_fields, patches, server_side_apply, subresources
from roadstead.store.api import Api, Write, key_of
from roadstead.store.deletion import DeleteOptions
from roadstead.store.progress import Progress
from roadstead.store.store import Entry
from roadstead.values.copies import copied
from roadstead.values.status_errors import (
    MODIFIED,
    Cause,
    StatusError,
    bad_request,
    conflict,
    invalid,
    not_found,
)

if TYPE_CHECKING:
    from roadstead.server.access_reviews import Authorizer
    from roadstead.server.paths import Target
    from roadstead.values.resources import Obj, Resource

_JSON_PATCH = "application/json-patch+json"
_PATCHES = (_JSON_PATCH, "application/merge-patch+json", STRATEGIC_PATCH, APPLY)


def read(api: Api, target: Target) -> Entry:
    """The object or subresource that a GET names.

    Raises:
        StatusError: 404.
    """
    resource = target.resource
    virtual = api.virtual.get(resource.key)
    if virtual is not None:
        for obj in virtual.list(target.namespace):
            if obj["metadata"]["name"] == target.name:
                return Entry(obj, 0)
        raise not_found(resource, target.name)
    entry = api.entry(resource, target.namespace, target.name)
    if target.subresource == "scale":
        return Entry(
            subresources.scale_of(entry.obj, api.kind(resource).scale_paths(resource)), entry.revision
        )
    return entry


def write(
    api: Api, target: Target, method: str, sent: SentRequest, token: str, authorizer: Authorizer | None = None
) -> WriteResult:
    """Carry out a write.

    Args:
        api: where.
        target: the target of the path.
        method: the method of the request.
        sent: its parameters, body and headers.
        token: the valid one, for reviews.
        authorizer: judges what reviews ask; None allows everything.

    Raises:
        StatusError: it is rejected.
    """
    verb = verb_of(target, method)
    if verb in ("delete", "deletecollection"):
        return (_delete if verb == "delete" else _delete_collection)(api, target, sent)
    if verb == "patch":
        _check_patch(target.resource, sent.media)
    client = sent.headers.get("User-Agent", "unknown").partition("/")[0]
    how = write_options(verb, sent.query, sent.media, target.subresource, client)
    how = dataclasses.replace(how, user=sent.user)
    if target.resource.ephemeral and target.resource.kind != "Binding":
        obj = typed(decoded(sent.body, sent.media), _kind_of(target.resource))
        obj = api.admitted(target.resource, (target.namespace or "", ""), obj, how, subresource="")
        reviewed = review(target.resource, obj, token, sent.user, target.namespace, authorizer)
        return WriteResult(reviewed, 201)
    try:
        change = _carried_out(api, target, verb, sent, how, token)
    except StatusError as error:
        error.warnings += how.warnings
        raise
    change.warnings += how.warnings
    return change


def _kind_of(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.kind


def _carried_out(
    api: Api, target: Target, verb: str, sent: SentRequest, how: Write, token: str
) -> WriteResult:
    if target.resource.ephemeral or target.subresource in (
        "binding",
        "eviction",
        "scale",
        "finalize",
        "token",
    ):
        return _special(api, target, sent, how, patch=verb == "patch", token=token)
    if target.subresource == "approval":
        how = dataclasses.replace(how, subresource="status")
    if verb == "patch":
        return _apply(api, target, sent, how) if sent.media == APPLY else _patch(api, target, sent, how)
    return _create_or_update(api, target, verb, sent, how)


def _create_or_update(api: Api, target: Target, verb: str, sent: SentRequest, how: Write) -> WriteResult:
    resource = target.resource
    kind = api.kind(resource)
    obj = sent_object(decoded(sent.body, sent.media), resource)
    obj, strays = kind.decode(obj, resource)
    warnings = stray_field_warnings(sent, strays, resource)
    settle_namespace(obj, target)
    meta = obj["metadata"]
    given = meta.pop("managedFields", None)
    warnings += kind.warnings(obj)
    if verb == "create":
        if meta.get("resourceVersion") and not how.dry_run:
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        return WriteResult(api.create_owned(resource, obj, how), 201, resource, warnings)
    if not meta.get("name"):
        why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(why)
    check_name(obj, target)
    entry = api.store.collection(resource.collection).entries.get(key_of(obj))
    if entry is None and kind.creates_on_update and not target.subresource:
        return WriteResult(api.create_owned(resource, obj, how), 201, resource, warnings)
    how = _with_managers(api, resource, obj, given, how)
    return WriteResult(api.update_owned(resource, obj, how), 200, resource, warnings)


def _with_managers(api: Api, resource: Resource, new: Obj, given: Any, how: Write) -> Write:
    """Let a client reset managedFields: an empty list drops all, other entries replace the current ones."""
    entry = api.store.collection(resource.collection).entries.get(key_of(new))
    if given is None or entry is None:
        return how
    wanted = managed_fields.read(given)
    if [one.entry for one in wanted] == [one.entry for one in entry.managers] or (given and not wanted):
        return how
    old = api.served(resource, entry).obj
    schema, who = api.kind(resource).schema(resource), api.manager(resource, how)
    return dataclasses.replace(how, managers=managed_fields.updated(wanted, old, new, schema, who))


# -- patches -------------------------------------------------------------------------------------------------


def _check_patch(resource: Resource, media: str) -> None:
    """Check that the resource accepts patches of this media type.

    Raises:
        StatusError: 415.
    """
    supported = tuple(one for one in _PATCHES if not (resource.custom and one == STRATEGIC_PATCH))
    if media not in supported:
        raise unsupported(media, supported)


def _patch(api: Api, target: Target, sent: SentRequest, how: Write) -> WriteResult:
    resource, media = target.resource, sent.media
    kind = api.kind(resource)
    patch = decoded(sent.body, "")
    stored = api.store.collection(resource.collection).entries.get((target.namespace or "", target.name))
    if stored is None:
        raise not_found(resource, target.name)
    new = api.served(resource, stored).obj
    if b"managedFields" in sent.body:
        entries = copied([one.entry for one in stored.managers])
        new = {**new, "metadata": {**new["metadata"], "managedFields": entries}}
    if media == _JSON_PATCH or resource.custom:
        new = copied(new)  # these change in place; decoding the others creates new objects
    new = _patched(new, patch, media, kind.schema(resource))
    obj, strays = _decoded_patch(api, target, new)
    try:
        warnings = stray_field_warnings(sent, strays, resource)
    except StatusError as error:
        raise _bad_patch(error.message.partition(": ")[2]) from error
    settle_namespace(obj, target)
    check_name(obj, target)
    meta, uid = obj["metadata"], stored.obj["metadata"]["uid"]
    is_kept = resource.custom and target.subresource == "status"  # all metadata, regardless of the patch
    if meta.get("uid", uid) != uid and not is_kept:
        message = f'Invalid value: "{meta["uid"]}": field is immutable'
        raise invalid(resource, target.name, [Cause("metadata.uid", message)])
    how = _with_managers(api, resource, obj, meta.pop("managedFields", None), how)
    return WriteResult(api.update_owned(resource, obj, how), 200, resource, warnings + kind.warnings(obj))


def _patched(obj: Obj, patch: Any, media: str, schema: Any) -> Any:
    """The object after a patch.

    Raises:
        StatusError: 400, 422.
    """
    if media == _JSON_PATCH:
        return patches.json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request("the patch must be an object")
    if media == STRATEGIC_PATCH:  # its apiVersion and kind are not checked
        patch = {key: value for key, value in patch.items() if key not in ("apiVersion", "kind")}
        return patches.strategic(obj, patch, schema)
    return patches.merge(obj, patch)


def _bad_patch(why: str) -> StatusError:
    message = f"Invalid value: {why}"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": causes})


def _decoded_patch(api: Api, target: Target, new: Any) -> tuple[Obj, list[str]]:
    """The result of a patch as an object of the resource.

    Raises:
        StatusError: 422.
    """
    resource = target.resource
    if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
        raise _bad_patch("the result is no object")
    given = (new.get("apiVersion"), new.get("kind"))
    if given != (resource.api_version, resource.kind):
        wrong = "kind" if given[1] != resource.kind else "apiVersion"
        right = resource.kind if wrong == "kind" else resource.api_version
        message = f'Invalid value: "{new.get(wrong, "")}": must be {right}'
        named = dataclasses.replace(resource, kind=str(given[1] or ""))
        raise invalid(named, target.name, [Cause(wrong, message)])
    try:
        return api.kind(resource).decode(new, resource)
    except StatusError as error:
        raise _bad_patch(error.message) from error


def _apply(api: Api, target: Target, sent: SentRequest, how: Write) -> WriteResult:
    resource = target.resource
    kind = api.kind(resource)
    config = sent_object(server_side_apply.checked_config(decoded(sent.body, APPLY)), resource)
    config, strays = kind.decode(config, resource)
    if strays:
        where = f"{target.namespace}/{target.name}" if target.namespace else target.name
        what = f"{where}; {resource.api_version}, Kind={resource.kind}"
        why = f".{strays[0]}: field not declared in schema"
        raise StatusError(500, "", f"failed to create typed patch object ({what}): {why}")
    settle_namespace(config, target)
    meta = config["metadata"]
    meta.setdefault("name", target.name)
    check_name(config, target)
    who = api.manager(resource, how, "Apply")
    schema = kind.schema(resource)
    flags = {
        "force": sent.query.get("force", "") == "true",
        "has_status": resource.subresource("status") is not None,
    }
    stored = api.store.collection(resource.collection).entries.get((target.namespace or "", target.name))
    if stored is None:
        if target.subresource:
            raise not_found(resource, target.name)
        if meta.get("uid") or meta.get("resourceVersion"):
            given = f"the provided object specified uid {meta.get('uid', '')}"
            why = f"uid mismatch: {given}, and no existing object was found"
            raise conflict(resource, target.name, why)
        live: Obj = {key: config[key] for key in ("apiVersion", "kind") if key in config}
        live["metadata"] = {key: meta[key] for key in ("name", "namespace") if key in meta}
        new, owners = server_side_apply.apply(live, (), config, schema, who, **flags)
        made = api.create_owned(resource, new, dataclasses.replace(how, managers=owners))
        return WriteResult(made, 201, resource)
    live = api.served(resource, stored).obj
    version = meta.pop("resourceVersion", None)
    if version and version != live["metadata"]["resourceVersion"]:
        raise conflict(resource, target.name, MODIFIED)
    new, owners = server_side_apply.apply(live, stored.managers, config, schema, who, **flags)
    return WriteResult(
        api.update_owned(resource, copied(new), dataclasses.replace(how, managers=owners)), 200, resource
    )


# -- subresources with their own writes ----------------------------------------------------------------------


def _special(
    api: Api, target: Target, sent: SentRequest, how: Write, *, patch: bool, token: str
) -> WriteResult:
    resource, namespace = target.resource, target.namespace or ""
    if patch:
        shown = read(api, target).obj
        schema = api.kind(resource).schema(resource)
        obj = _patched(copied(shown), decoded(sent.body, ""), sent.media, schema)
    else:
        obj = decoded(sent.body, sent.media)
    obj = typed(obj, BODIES.get(target.subresource) or _kind_of(resource))
    if resource.key == "bindings" or target.subresource == "binding":
        name = target.name or (obj.get("metadata") or {}).get("name", "")
        subresources.bind(api, (namespace, name), obj, how, labelled=bool(target.subresource))
        return WriteResult(success(201), 201)
    if target.subresource == "token":
        account = api.entry(resource, namespace, target.name).obj
        obj = api.admitted(resource, (namespace, target.name), obj, how, subresource="token")
        return WriteResult(issued(account, obj, token), 201)
    if target.subresource == "eviction":
        options = delete_options({}, obj.get("deleteOptions") or {})
        how = dataclasses.replace(how, dry_run=how.dry_run or options.dry_run)
        subresources.evict(api, (namespace, target.name), obj, how, options)
        return WriteResult(success(201), 201)
    if target.subresource == "finalize":
        return WriteResult(subresources.finalize(api, target.name, obj, how), 200, resource)
    stored = api.store.collection(resource.collection).entries.get((namespace, target.name))
    if stored is None:
        raise not_found(resource, target.name)
    how = dataclasses.replace(how, subresource="")
    return WriteResult(subresources.rescale(api, resource, stored, obj, how))


# -- deletions -----------------------------------------------------------------------------------------------


def _sent_options(sent: SentRequest) -> DeleteOptions:
    options = delete_options(sent.query, decoded(sent.body, sent.media) if sent.body.strip() else None)
    return dataclasses.replace(options, user=sent.user)


def _delete(api: Api, target: Target, sent: SentRequest) -> WriteResult:
    resource = target.resource
    options = _sent_options(sent)
    entry, removed = api.remove(resource, target.namespace, target.name, options)
    if not removed or api.kind(resource).returns_deleted:
        return WriteResult(entry, 200, resource, options.warnings)
    details = {"name": target.name, "kind": resource.plural, "uid": entry.obj["metadata"]["uid"]}
    if resource.group and not resource.storage_key:
        details["group"] = resource.group
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return WriteResult(status, warnings=options.warnings)


def _delete_collection(api: Api, target: Target, sent: SentRequest) -> WriteResult:
    resource, query = target.resource, sent.query
    options = _sent_options(sent)
    progress = api.progress or Progress()
    if progress.selected is None:  # the first run: later ones delete the rest of these
        found = api.list(
            resource,
            target.namespace,
            labels=query.get("labelSelector", ""),
            fields=query.get("fieldSelector", ""),
        )
        progress.selected = found, found[::-1]
    chosen, left = progress.selected
    while left:
        namespace, name = key_of(left[-1])
        try:
            api.remove(resource, namespace, name, options, of_many=True)
        except StatusError as error:
            if error.code != 404:
                raise
        left.pop()
    head = {
        "kind": resource.list_kind or f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(api.store.revision)},
    }
    if not resource.custom:  # items of a list of a built-in kind do not repeat the kind
        chosen = [{key: one[key] for key in one if key not in ("kind", "apiVersion")} for one in chosen]
    # As upstream: the objects before their deletion.
    return WriteResult({**head, "items": chosen}, warnings=options.warnings)
