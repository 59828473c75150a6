"""ListedPods, against each pod decoded by itself."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from inspection.contents import a_pod_document
from plimsoll.cluster.listed_objects import read_object
from plimsoll.inspection import listed_pods
from plimsoll.inspection.listed_pods import ListedPods
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import Templates, deciding_volumes

#: Specs whose text has what is cut out of keys, or looks like it, elsewhere or in another form.
SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "token": {"volumes": [{"name": "kube-api-access-@", "projected": {"sources": []}}]},
    "claim named like a token": {
        "volumes": [{"name": "kube-api-access-@", "persistentVolumeClaim": {"claimName": "data"}}]
    },
    "volume of its own": {"volumes": [{"name": "kube-api-access-@", "ephemeral": {}}]},
    "selector named like a token": {"nodeSelector": {"who": "kube-api-access-@"}},
    "label named as the node": {"nodeSelector": {"nodeName": "kube-@"}},
    "term named as the node": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"nodeName": "node-1"}}, "topologyKey": "zone"}
                ]
            }
        }
    },
    "a null": {"tolerations": None},
    "no spec that can be read": {"containers": "none"},
}


def _siblings(spec: dict[str, Any], *, placed: bool) -> list[bytes]:
    """Two pods of an owner; in the second another node, and another token."""
    found = []
    for name, node, letters in (("one", "node-1", "abcde"), ("two", "node-2", "fgh45")):
        pod = a_pod_document(name, node if placed else "")
        pod["spec"] |= spec
        found.append(json.dumps(pod).replace("@", letters).encode())
    return found


def _alike(pod: Pod | None) -> Pod | None:
    """The pod without volumes that no decision reads."""
    return None if pod is None else replace(pod, spec=replace(pod.spec, volumes=deciding_volumes(pod.spec)))


@pytest.mark.parametrize("placed", [True, False])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_pods_are_what_each_would_be_by_itself(spec: dict[str, Any], *, placed: bool) -> None:
    """In both orders, as what one has must not become what the other has."""
    documents = _siblings(spec, placed=placed)
    for order in (documents, documents[::-1]):
        reader = ListedPods()
        for document in [*order, *order]:
            pod, key, problems = reader.read(document)
            by_itself, its_key, its_problems = read_object(Pod, document)
            assert (_alike(pod), key, problems) == (_alike(by_itself), its_key, its_problems)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b'{"metadata":{"labels":{"a":"\xff"}}}', b'{"spec":null}', b'{"spec":{"nodeName":""}}'],
)
def test_odd_texts_are_what_they_would_be_by_themselves(text: bytes) -> None:
    """No JSON, no object, invalid UTF-8, and parts that are missing."""
    assert ListedPods().read(text) == read_object(Pod, text)


def test_siblings_share_their_parts_and_are_of_one_template() -> None:
    """Only the node differs in their specs; no map of theirs can be changed."""
    reader, templates = ListedPods(), Templates()
    one, two = (reader.read(each)[0] for each in _siblings(SPECS["token"], placed=True))
    assert one is not None
    assert two is not None
    assert one.labels is two.labels
    assert one.metadata.owner_references is two.metadata.owner_references
    assert one.spec.containers is two.spec.containers
    assert templates.info(one).template is templates.info(two).template
    with pytest.raises(TypeError, match="read-only"):
        one.labels["app"] = "other"


def test_what_is_kept_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above it all is forgotten; the pods stay right."""
    monkeypatch.setattr(listed_pods, "MOST_BYTES", 1_000)
    reader = ListedPods()
    for number in range(50):
        document = _siblings({"nodeSelector": {"n": str(number)}}, placed=True)[0]
        assert reader.read(document)[0] == read_object(Pod, document)[0]
        assert all(
            sum(map(len, texts._known)) <= 2_000 for texts in (reader._labels, reader._owners, reader._specs)
        )


def test_it_reads_every_field_of_metadata() -> None:
    """A new field of ObjectMeta is to be handed on here as well."""

    def read_by(kind: type) -> list[str]:
        return [each.encode_name for each in msgspec.structs.fields(kind)]

    assert read_by(listed_pods._Meta) == read_by(ObjectMeta)
