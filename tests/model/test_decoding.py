"""API JSON into values: unknown fields cost nothing, nulls are absences, errors name their place."""

import pytest

from plimsoll.model.decoding import DecodeError, convert, decode
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod


def test_reads_the_fields_it_knows_and_skips_the_rest() -> None:
    """Camel case on the wire, snake case in the model, Kubernetes' odd capitals included."""
    pod = decode(
        Pod,
        b"""{"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "prod", "uid": "u1", "managedFields": [{"x": {}}],
                     "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "command": ["sh"],
            "ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}],
            "resources": {"requests": {"cpu": "250m", "memory": 1024}}}],
            "volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1"}}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}},
        "status": {"phase": "Running", "podIP": "10.1.1.1"}}""",
    )

    assert (pod.key, pod.node_name, pod.priority, pod.is_terminal) == ("prod/web", "n1", 0, False)
    assert pod.metadata.creation_timestamp.isoformat() == "2026-01-02T03:04:05+00:00"
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.containers[0].resources.requests == {"cpu": "250m", "memory": 1024}
    assert pod.spec.volumes[0].aws_elastic_block_store.volume_id == "vol-1"
    assert pod.spec.affinity.node_affinity.required.node_selector_terms[0].match_fields[0].values == ("n1",)


def test_null_is_absence() -> None:
    """A null list, map, number or object reads as if it were not there."""
    written = b"""{"metadata": {"name": "web", "labels": null, "ownerReferences": null},
        "spec": {"priority": null, "tolerations": null,
                 "containers": [{"name": "c", "ports": null, "resources": null}]},
        "status": null}"""

    assert decode(Pod, written) == decode(
        Pod, b'{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}}'
    )


def test_a_fresh_pod_is_harmless() -> None:
    """Built by hand without arguments, every field has the value the API means by absence."""
    pod = Pod()

    assert decode(Pod, b"{}") == pod
    assert pod.spec.scheduler_name == "default-scheduler"
    assert not pod.is_terminating


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (b'{"spec": {"containers": [{"name": 7}]}}', r"\$.spec.containers\[0\].name"),
        (b'{"spec": {"priority": "high"}}', r"\$.spec.priority"),
        (b'{"spec": ', "truncated"),
        (b"[]", "Expected `object`"),
    ],
)
def test_a_malformed_document_names_its_place(document: bytes, place: str) -> None:
    """One bad object is one error with a path, for the caller to report and pass over."""
    with pytest.raises(DecodeError, match=f"cannot read the document as Pod: .*{place}"):
        decode(Pod, document)


def test_parsed_documents_convert_alike() -> None:
    """YAML or JSON that is parsed already gives the same value as its bytes."""
    parsed = {
        "metadata": {"name": "n1", "labels": None},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    }

    node = convert(Node, parsed)

    assert node == decode(
        Node, b'{"metadata": {"name": "n1"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}'
    )
    assert node.name == "n1"
