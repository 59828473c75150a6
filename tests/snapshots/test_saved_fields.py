"""Trimming: nothing that the model does not read is saved, and everything that it reads is."""

from typing import Any, get_args, get_origin

import msgspec
import pytest

from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.cluster.watched_resources import GROUP_OWNERS
from plimsoll.model.decoding import decode
from plimsoll.model.kinds.owned_group import OWNERS
from plimsoll.model.kinds.pod import Pod
from plimsoll.snapshots.cluster_reader import PATHS
from plimsoll.snapshots.content import DEPLOYMENTS, MAINTENANCES, POLICIES, RECORDS
from plimsoll.snapshots.saved_fields import ANNOTATIONS, KINDS, trimmed, twin

SECRET = "hunter2"

#: What the API server has and a snapshot must not: one of everything that may hold a secret.
CONTAINER = {
    "name": "main",
    "image": "registry.example.com/app:1",
    "env": [{"name": "TOKEN", "value": SECRET}, {"valueFrom": {"secretKeyRef": {"name": SECRET}}}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "command": ["sh", "-c", SECRET],
    "args": [SECRET],
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    "resources": {"requests": {"cpu": "1"}, "claims": [{"name": SECRET}]},
    "ports": [{"hostPort": 80, "name": SECRET}],
    "restartPolicyRules": [{"action": "Restart", "note": SECRET, "exitCodes": {"values": [3], "x": SECRET}}],
}
POD_SPEC = {
    "nodeName": "node-1",
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "ephemeralContainers": [CONTAINER],
    "imagePullSecrets": [{"name": SECRET}],
    "hostAliases": [{"hostnames": [SECRET]}],
    "volumes": [
        {"name": "a", "secret": {"secretName": SECRET}},
        {"name": "b", "configMap": {"name": SECRET}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": SECRET}}]}},
        {"name": "d", "csi": {"driver": "d", "volumeAttributes": {"password": SECRET}}},
        {"name": "e", "rbd": {"image": "i", "keyring": SECRET, "secretRef": {"name": SECRET}}},
        {"name": "f", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"a": SECRET}}}}},
    ],
}
METADATA = {
    "name": "web",
    "namespace": "shop",
    "uid": "u",
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        "plimsoll.dev/evict": "false",
    },
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {f"f:{SECRET}": {}}}}],
    "selfLink": SECRET,
}


def planted(kind: Any, depth: int = 0) -> Any:
    """A document with a secret in a field that no type of the model has, in every struct of it."""
    found: dict[str, Any] = {"unknownField": SECRET, "data": {"password": SECRET}}
    for field in msgspec.structs.fields(kind) if depth < 8 else ():
        inner, is_list = struct_in(field.type)
        if inner is not None:
            value = planted(inner, depth + 1)
            found[field.encode_name] = [value] if is_list else value
    return found


def struct_in(annotation: Any) -> tuple[Any, bool]:
    """The struct of a field's type, and whether the field is a list of it."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation, False
    for each in get_args(annotation):
        found, _ = struct_in(each)
        if found is not None:
            return found, get_origin(annotation) is tuple
    return None, False


@pytest.mark.parametrize("plural", KINDS)
def test_unknown_fields_are_left_out_at_every_depth(plural: str) -> None:
    """Whatever field a future API version, or somebody's patch, puts secrets into."""
    document = planted(KINDS[plural])
    assert msgspec.json.encode(document).count(SECRET.encode()) > 2

    assert SECRET.encode() not in trimmed(plural, msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("plural", "document"),
    [
        ("pods", {"metadata": METADATA, "spec": POD_SPEC}),
        (DEPLOYMENTS, {"metadata": METADATA, "spec": {"template": {"metadata": METADATA, "spec": POD_SPEC}}}),
        ("replicasets", {"metadata": METADATA, "spec": {"template": {"spec": POD_SPEC}}}),
        ("storageclasses", {"metadata": METADATA, "parameters": {"adminSecret": SECRET}}),
        ("persistentvolumes", {"metadata": METADATA, "spec": {"csi": {"volumeAttributes": {"k": SECRET}}}}),
        (POLICIES, {"metadata": METADATA, "spec": {}, "data": SECRET}),
    ],
)
def test_secrets_of_real_objects_are_left_out(plural: str, document: dict[str, Any]) -> None:
    """Environment, commands, secret and config volumes, annotations, managed fields, parameters."""
    kept = trimmed(plural, msgspec.json.encode(document))

    assert SECRET.encode() not in kept
    assert b'"plimsoll.dev/evict":"false"' in kept


def test_keys_of_extenders_are_left_out() -> None:
    """The rest of their TLS settings stays, so that the policy is judged as before."""
    tls = {"caData": "QQ==", "certData": "Qg==", "keyData": "Qw=="}
    extender = {"urlPrefix": "https://gpu.example.com", "enableHTTPS": True, "tlsConfig": tls}
    spec = {"scheduling": {"schedulerName": "plimsoll", "extenders": [extender]}}

    kept = msgspec.json.decode(
        trimmed(POLICIES, msgspec.json.encode({"metadata": {"name": "p"}, "spec": spec}))
    )

    assert kept["spec"]["scheduling"]["extenders"][0]["tlsConfig"] == {"caData": "QQ=="}
    SchedulingSpec.from_wire(kept["spec"]["scheduling"])


@pytest.mark.parametrize(
    "document",
    [
        {
            "metadata": {"name": "a", "uid": "u"},
            "spec": {"priority": 0, "containers": [], "hostUsers": False},
        },
        {
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": ""}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "containers": [CONTAINER],
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}},
                "topologySpreadConstraints": [{"maxSkew": 2, "labelSelector": {}}],
                "volumes": [{"name": "x", "emptyDir": {}}, {"name": "y", "hostPath": {"path": "/"}}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        },
        {"metadata": {"name": "a", "labels": None}, "spec": {"nodeName": None, "containers": None}},
    ],
)
def test_a_trimmed_object_reads_as_before(document: dict[str, Any]) -> None:
    """What is left out is what the model takes for its default; explicit nulls count as absent."""
    wire = msgspec.json.encode(document)
    kept = decode(Pod, trimmed("pods", wire))
    whole = decode(Pod, wire)

    assert kept.spec == whole.spec
    assert (kept.metadata, kept.status) == (whole.metadata, whole.status)


def test_a_field_of_a_wrong_type_is_left_out_with_what_it_holds() -> None:
    """Other clients than the API server may write such files."""
    wire = msgspec.json.encode(
        {"metadata": {"name": "a", "labels": SECRET}, "spec": {"containers": [{"image": [SECRET]}]}}
    )

    kept = trimmed("pods", wire)

    assert SECRET.encode() not in kept
    assert decode(Pod, kept).name == "a"


def test_a_saved_owner_forms_the_same_group() -> None:
    """A JobSet of two jobs, of which one waits for the other, in one rack; no more of that is kept."""
    pods = {"template": {"spec": {"parallelism": 3}}}
    jobs = [{"name": "a", **pods}, {"name": "b", "dependsOn": [{"name": "secret"}], **pods}]
    wishes = {f"plimsoll.dev/{each}-topology": each for each in ("required", "preferred")}
    document = {"metadata": {"name": "x", "annotations": wishes}, "spec": {"replicatedJobs": jobs}}
    wire = msgspec.json.encode(document)

    job_set = next(each for each in OWNERS if each.kind == "JobSet")
    kept = trimmed(job_set.resource, wire)

    before, after = decode(job_set, wire).spec, decode(job_set, kept).spec
    assert after.min_member == before.min_member == 3
    assert (after.topology.required, after.topology.preferred) == ("required", "preferred")
    assert b"secret" not in kept


def test_every_collection_that_is_read_can_be_saved() -> None:
    """From a live cluster, into a file."""
    owners = {each.name for each in GROUP_OWNERS}
    assert {POLICIES, RECORDS, MAINTENANCES, *KINDS} == PATHS.keys() | owners


def test_a_field_that_admits_anything_must_be_narrowed() -> None:
    """A new free-form field of the model stops the build until somebody says what of it is saved."""
    kind = msgspec.defstruct("Careless", [("template", dict[str, Any], msgspec.field(default_factory=dict))])

    with pytest.raises(TypeError, match=r"Careless\.template"):
        twin(kind)


def test_annotations_are_those_that_something_reads() -> None:
    """Constants of the modules that read them; none is a family of names."""
    assert "plimsoll.dev/evict" in ANNOTATIONS
    assert "kubectl.kubernetes.io/last-applied-configuration" not in ANNOTATIONS
