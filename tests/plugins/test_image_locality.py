"""ImageLocality, against upstream's own arithmetic and the conformance laws."""

from typing import Any

import pytest

from plimsoll.framework import CycleState, NoArgs
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.plugins.image_locality import ImageLocality, normalized
from plimsoll.testing.builders import a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import ScorePluginConformance

MIB = 2**20
PLUGIN = ImageLocality(NoArgs())


def with_images(name: str, **sizes_mib: Any) -> Node:
    images = [
        {"names": [f"{image}:latest", f"{image}@sha256:0"], "sizeBytes": size * MIB}
        for image, size in sizes_mib.items()
    ]
    return a_node(name, status={"images": images})


def running(
    *images: str, init: list[str] | tuple[Any, ...] = (), volumes: list[str] | tuple[Any, ...] = ()
) -> PodInfo:
    return the_info(
        a_pod(
            containers=[{"name": "c", "image": image} for image in images],
            initContainers=[{"name": "i", "image": image} for image in init],
            volumes=[{"name": "v", "image": {"reference": image}} for image in volumes],
        )
    )


@pytest.mark.parametrize(
    ("pod", "points"),
    [
        # 250 MiB on 1 of 2 nodes: 125 MiB; 100*(125-23)//(1000-23) = 10
        pytest.param(running("big"), [10, 0], id="worked-example"),
        # 40 MiB on both: 40; 100*(40-23)//977 = 1
        pytest.param(running("both"), [1, 1], id="on-every-node"),
        # twice 125 MiB over two containers: 100*(250-23)//(2000-23) = 11
        pytest.param(running("big", "big"), [11, 0], id="once-a-container"),
        # 125 MiB, two containers: 100*(125-23)//1977 = 5
        pytest.param(running("nowhere", init=["big"]), [5, 0], id="init-containers"),
        # like a second container with that image: 100*(125-23)//1977 = 5
        pytest.param(running("nowhere", volumes=["big"]), [5, 0], id="image-volumes"),
        # 375 MiB, init container, container and volume: 100*(375-23)//2977 = 11
        pytest.param(running("big", init=["big"], volumes=["big"]), [11, 0], id="all-three"),
        # 5000/2 = 2500 MiB, cut to 1000
        pytest.param(running("huge"), [0, 100], id="at-most-a-gigabyte-a-container"),
        # 20/2 = 10 MiB < 23
        pytest.param(running("tiny"), [0, 0], id="too-small-to-matter"),
        pytest.param(running("big:other"), [0, 0], id="other-tag"),
    ],
)
def test_scores_match_worked_examples(pod: PodInfo, points: list[int]) -> None:
    """Each case states its arithmetic."""
    snapshot = a_snapshot(with_images("n1", big=250, both=40, tiny=20), with_images("n2", both=40, huge=5000))

    assert PLUGIN.score(CycleState(), pod, snapshot).tolist() == points


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("app", "app:latest"),
        ("registry:5000/app", "registry:5000/app:latest"),
        ("registry:5000/app:v1", "registry:5000/app:v1"),
        ("app@sha256:0", "app@sha256:0"),
    ],
)
def test_a_name_without_tag_means_latest(image: str, name: str) -> None:
    """A colon counts behind the last slash; a digest has one."""
    assert normalized(image) == name


class TestConformance(ScorePluginConformance):
    """The laws every score plugin obeys."""

    plugin = PLUGIN
