"""Objects of shared parts: equal to what was read, and found under the same template."""

import gc
from functools import partial
from itertools import product
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cluster.equal_parts import EqualParts
from plimsoll.cluster.listed_objects import ObjectReader
from plimsoll.cluster.shared_objects import SharedNodes, SharedPods
from plimsoll.model.decoding import decode
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import Templates, deciding_volumes, shape_of

FEW = st.sampled_from(("a", "b"))
MAPS = st.dictionaries(FEW, FEW, max_size=2)
AMOUNTS = st.dictionaries(st.sampled_from(("cpu", "memory")), st.sampled_from(("1", 1, "2")), max_size=2)
TIMES = st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
VOLUMES = st.sampled_from(
    (
        {"name": "a", "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "a", "emptyDir": {"medium": "Memory"}},
        {"name": "token-1", "projected": {}},
        {"name": "token-2", "projected": {}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}},
    )
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {
                "name": FEW,
                "namespace": FEW,
                "uid": FEW,
                "labels": MAPS,
                "annotations": MAPS,
                "ownerReferences": st.lists(
                    st.fixed_dictionaries({"name": FEW, "controller": st.booleans()}), max_size=1
                ),
                "creationTimestamp": TIMES,
            }
        ),
        "spec": st.fixed_dictionaries(
            {
                "containers": st.lists(
                    st.fixed_dictionaries(
                        {"name": FEW, "resources": st.fixed_dictionaries({"requests": AMOUNTS})}
                    ),
                    min_size=1,
                    max_size=2,
                ),
                "volumes": st.lists(VOLUMES, max_size=2),
            },
            optional={
                "nodeName": FEW,
                "priority": st.integers(0, 1),
                "nodeSelector": MAPS,
                "schedulerName": FEW,
            },
        ),
        "status": st.fixed_dictionaries(
            {"phase": st.sampled_from(("Running", "Pending")), "qosClass": st.just("Burstable")},
            optional={
                "conditions": st.lists(
                    st.fixed_dictionaries({"type": FEW, "status": FEW, "lastTransitionTime": TIMES}),
                    max_size=3,
                ),
                "containerStatuses": st.lists(
                    st.fixed_dictionaries(
                        {
                            "name": FEW,
                            "restartCount": st.integers(0, 1),
                            "resources": st.fixed_dictionaries({"requests": AMOUNTS}),
                        }
                    ),
                    max_size=2,
                ),
            },
        ),
    }
)


def plain(document: dict[str, Any]) -> Pod:
    """A pod as it is decoded, without the volumes that take part in no decision."""
    pod = decode(Pod, orjson.dumps(document))
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, volumes=deciding_volumes(pod.spec))
    )


@settings(max_examples=75)
@given(st.lists(st.tuples(PODS, st.booleans()), min_size=1, max_size=6))
def test_shared_pods_are_what_was_read(documents: list[tuple[dict[str, Any], bool]]) -> None:
    """Whatever came before, each pod equals its document, and so do its template and its requests."""
    shared, templates, reference = SharedPods(), Templates(), Templates()
    encode = msgspec.msgpack.Encoder(order="sorted").encode  # siblings may write labels in another order
    kept, old = [], None
    for document, is_update in documents:
        pod = plain(document)
        read = shared.sharing(decode(Pod, orjson.dumps(document)), old if is_update else None)
        info, expected = templates.info(read), reference.info(pod)
        kept.append((info, expected))
        old = read

        assert read == pod
        assert encode(read) == encode(pod)
        assert encode(shape_of(info.template.sample)) == encode(shape_of(pod))
        assert (info.requests, info.uid, info.pod.node_name) == (
            expected.requests,
            expected.uid,
            expected.pod.node_name,
        )
    assert len(templates) <= len(reference)


@pytest.mark.parametrize("is_update", [False, True])
def test_a_pod_is_compared_with_the_one_before_it(is_update: bool) -> None:
    """Not with one that was read earlier: three specs in every order, in a list or as states of one pod."""
    specs: list[dict[str, Any]] = [{}, {"hostNetwork": True}, {"hostNetwork": True, "nodeName": "n"}]
    for order in product(specs, repeat=4):
        shared, old = SharedPods(), None
        for spec in order:
            old = shared.sharing(plain({"spec": spec}), old if is_update else None)

            assert old == plain({"spec": spec})


def test_siblings_have_one_spec_and_find_their_template_by_it() -> None:
    """They differ in name, node and token volume; a changed label makes another template."""
    reader = ObjectReader(Pod)
    pods = []
    for number in range(3):
        document = {
            "metadata": {
                "name": f"p{number}",
                "uid": str(number),
                "labels": {"app": "a", "v": str(number // 2)},
            },
            "spec": {
                "nodeName": f"n{number}",
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
                "volumes": [{"name": f"kube-api-access-{number}", "projected": {}}],
            },
        }
        value, _, _ = reader.document(orjson.dumps(document))
        pods.append(reader.sharing(value, None))
    templates = Templates()

    first, second, third = (templates.info(pod).template for pod in pods)

    assert pods[0].spec.containers is pods[1].spec.containers is pods[2].spec.containers
    assert pods[0].labels is pods[1].labels
    assert [pod.node_name for pod in pods] == ["n0", "n1", "n2"]
    assert first is second is not third


def test_a_template_that_is_gone_is_not_found_by_new_parts() -> None:
    """A template is forgotten with its last pod, and its key with it: other objects may get the same ids."""
    shared, templates = SharedPods(), Templates()

    def document(number: int) -> Pod:
        containers = [{"name": "main", "resources": {"requests": {"cpu": str(number)}}}]
        return decode(Pod, orjson.dumps({"metadata": {"uid": "a"}, "spec": {"containers": containers}}))

    for number in range(1, 50):
        info = templates.info(shared.sharing(document(number)))
        assert info.requests["cpu"] == 1000 * number
        shared = SharedPods()

    del info
    gc.collect()
    assert len(templates) == 0


def test_a_part_is_kept_as_long_as_somebody_has_it() -> None:
    """What no pod has any more is dropped; what one has is found again."""
    parts: EqualParts[dict[str, str]] = EqualParts()
    kept = parts.shared({"a": "kept"})
    parts.shared({"a": "dropped"})

    parts.sweep()

    assert len(parts) == 1
    assert parts.shared({"a": "kept"}) is kept


def test_parts_of_pods_that_are_gone_are_dropped() -> None:
    """A spec lives in the copies that its pods have with the names of their nodes."""
    shared = SharedPods()

    def read(number: int) -> Pod:
        spec = {"nodeName": "n", "containers": [{"name": f"c{number}", "image": "x" * 80}]}
        return shared.sharing(decode(Pod, orjson.dumps({"metadata": {"name": "p"}, "spec": spec})))

    first = read(0)
    for number in range(1, 3000):
        read(number)

    assert shared.kept["specs"] < 2100
    assert read(0).spec.containers is first.spec.containers


@given(
    st.lists(st.tuples(MAPS, AMOUNTS, st.lists(st.tuples(FEW, st.integers(0, 2)), max_size=3)), max_size=4)
)
def test_shared_nodes_are_what_was_read(documents: list[tuple[Any, Any, Any]]) -> None:
    """Each state equals its document, whatever the state before was."""
    shared, old = SharedNodes(), None
    for labels, amounts, images in documents:
        node = decode(
            Node,
            orjson.dumps(
                {
                    "metadata": {"name": "n", "labels": labels, "annotations": labels},
                    "status": {
                        "allocatable": amounts,
                        "capacity": amounts,
                        "conditions": [{"type": name, "status": "True"} for name in labels],
                        "images": [{"names": [name], "sizeBytes": size} for name, size in images],
                    },
                }
            ),
        )

        read = shared.sharing(node, old)

        assert msgspec.json.encode(read) == msgspec.json.encode(node)
        old = read


def test_parts_are_looked_through_when_twice_as_many_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look takes as long as there are parts; a thousand and as many as are in use go unused at most."""
    parts: EqualParts[dict[str, str]] = EqualParts()
    looks: list[int] = []
    sweep = EqualParts.sweep

    def counted(one: EqualParts[dict[str, str]]) -> None:
        looks.append(len(one))
        sweep(one)

    monkeypatch.setattr(EqualParts, "sweep", counted)
    held = [parts.shared({"used": str(number)}) for number in range(5000)]
    assert looks == [1025, 2051, 4103]
    del held
    for number in range(6000):
        parts.shared({"unused": str(number)})
        assert len(parts) <= 2 * 4103 + 1
    assert looks[3:] == [8207, 1025, 1025]
    assert len(parts) <= 1025


def test_the_many_small_parts_of_an_object_that_has_gone_are_dropped_although_none_is_new() -> None:
    """A node's images are shared one by one."""
    parts: EqualParts[dict[str, str]] = EqualParts()
    held = [parts.shared({"image": str(number)}) for number in range(5000)]
    del held
    usual = parts.shared({"image": "usual"})
    for _ in range(20_000):
        parts.shared({"image": "usual"})

    assert len(parts) == 1
    assert parts.shared({"image": "usual"}) is usual


def test_a_large_part_goes_with_the_next_line_after_its_pod() -> None:
    """Among others that stay: an idle watch has a line a minute, and one part went with each."""
    shared = SharedPods()
    pods = [
        shared.sharing(plain({"metadata": {"annotations": {f"{number}": "x" * 40_000}}}))
        for number in range(10)
    ]
    shared.sharing(plain({}))
    del pods[7]

    shared.let_go()

    assert shared.kept["maps"] == 9 + 1


@pytest.mark.parametrize("kind", [SharedNodes, SharedPods])
def test_all_parts_are_let_go(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of each attribute, at each call."""
    shared, called = kind(), list[str]()
    parts = {name: each for name, each in vars(shared).items() if isinstance(each, EqualParts)}
    for name, each in parts.items():
        monkeypatch.setattr(each, "let_go", partial(called.append, name))

    shared.let_go()

    assert parts
    assert sorted(called) == sorted(parts)
