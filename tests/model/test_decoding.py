"""API JSON into values: unknown fields cost nothing, nulls are absences, errors name their place."""

import pytest

from plimsoll.cluster.partial_objects import decode_in_part
from plimsoll.model.decoding import (
    DEEPEST,
    DecodeError,
    convert,
    decode,
    without_depths,
    without_nulls,
)
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


@pytest.mark.parametrize("depth", [400, 1000, 9000])
def test_what_is_nested_too_deeply_is_left_out(depth: int) -> None:
    """An API server takes ten thousand levels, and anybody may write them into managedFields."""
    deep = b'{"f:a":' * depth + b"1" + b"}" * depth
    document = (
        b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":%b}],"labels":%b},"spec":{"nodeName":"n"}}'
    )

    assert decode(Pod, document % (deep, b"{}")).node_name == "n"
    assert decode(Pod, document % (deep, b"null")).node_name == "n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * DEEPEST + "]" * DEEPEST, "[" * DEEPEST + "]" * DEEPEST),
        ("[" * 300 + "]" * 300, "[" * DEEPEST + "null" + "]" * DEEPEST),
        ('{"a":' * 300 + '"}"' + "}" * 300 + " ", '{"a":' * DEEPEST + "null" + "}" * DEEPEST + " "),
        ('["[[[[\\"]", {"a": 1}, ' + "[" * 300, '["[[[[\\"]", {"a": 1}, ' + "[" * (DEEPEST - 1) + "null"),
        ('"' + "[" * 300, '"' + "[" * 300),
    ],
)
def test_depths_are_cut_out_of_text(text: str, expected: str) -> None:
    """Brackets in strings do not count."""
    assert without_depths(text) == expected


def test_bytes_that_are_no_text_are_read_as_go_reads_them() -> None:
    """A pod with such a label takes its room all the same."""
    pod = decode(Pod, b'{"metadata":{"labels":{"a":"\xff"}},"spec":{"nodeName":"n"}}')

    assert (pod.node_name, pod.metadata.labels) == ("n", {"a": "\ufffd"})


@pytest.mark.parametrize("document", [b"1e400", b"-1x", b'{"a":1e400}{'])
def test_what_is_no_json_is_one_kind_of_error(document: bytes) -> None:
    """Also where only the second look finds that out."""
    with pytest.raises(DecodeError):
        decode(Node, document)


def test_numbers_beyond_64_bits_have_the_wrong_type() -> None:
    """Of amounts the others are kept."""
    document = b'{"spec":{"nodeName":"n","overhead":{"cpu":18446744073709551616,"memory":"1Gi"}}}'

    with pytest.raises(DecodeError, match="9223372036854775807"):
        decode(Pod, document)
    pod, problems = decode_in_part(Pod, document)

    assert (pod.spec.overhead, len(problems)) == ({"memory": "1Gi"}, 1)


def test_nulls_in_lists_and_maps_are_absent() -> None:
    """At any depth; what is empty stays."""
    document: dict[str, object] = {"a": None, "b": [None, {"c": None, "d": [None]}, 0, ""], "e": {}}

    assert without_nulls(document) == {"b": [{"d": []}, 0, ""], "e": {}}
