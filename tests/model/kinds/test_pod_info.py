"""Templates: one object for all pods of one shape, and none for shapes without pods."""

import gc

from plimsoll.model.kinds.pod_info import Templates
from plimsoll.testing.builders import a_pod


def test_pods_of_one_shape_share_a_template() -> None:
    """Name and uid are no part of it."""
    templates = Templates()

    one, two = templates.info(a_pod("a")), templates.info(a_pod("b"))

    assert one.template is two.template
    assert len(templates) == 1


def test_shapes_without_pods_are_forgotten() -> None:
    """Every Job's pods carry labels of their own; years of them must not pile up."""
    templates = Templates()

    kept = [templates.info(a_pod(f"p-{number}", labels={"job": str(number)})) for number in range(100)]
    del kept[1:]
    gc.collect()

    assert len(templates) == 1
    assert templates.info(a_pod("again", labels={"job": "0"})).template is kept[0].template
