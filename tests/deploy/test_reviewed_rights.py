"""The rights that the operator reviews are those that deploy/ grants, by the manifest that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deploy.manifests import grants, grants_with
from plimsoll.access.rights import EVENTS, GRANTS, OPTIONAL_GRANTS

if TYPE_CHECKING:
    from collections.abc import Callable

#: Reading what is watched needs no review: without it the operator does not become ready.
READING = {"get", "list", "watch"}


#: Granted by a manifest of its own within ``deploy/enforce``.
DELETE = ("delete", "", "pods")


def reviewed(manifest: str) -> set[tuple[str, str, str]]:
    """The rights that a message says this manifest grants."""
    named = [rights for name, _, rights in GRANTS + OPTIONAL_GRANTS if name == manifest]
    return {tuple(right) for rights in named for right in rights}  # type: ignore[misc] # known in this test


def test_those_of_a_dry_run() -> None:
    """All that it may write, but for leases and the count of an event that comes again."""
    written = {
        right
        for right in grants("dry-run")
        if right[0] not in READING and right[1] != "coordination.k8s.io" and right[2] != "events"
    }

    of_base = {right for right in reviewed("deploy/base") if right[0] not in READING}
    assert reviewed("deploy/dry-run") | of_base == written | {tuple(EVENTS)}


@pytest.mark.parametrize(
    ("manifest", "added"),
    [
        # Rendered by the tests themselves: each worker collects this file.
        pytest.param(
            "deploy/enforce", lambda: grants("enforce") - grants("dry-run") - {DELETE}, id="enforce"
        ),
        pytest.param(
            "deploy/enforce/preempting.yaml, or set preemption.viaEviction in the policy",
            lambda: grants("enforce") - grants_with("enforce", "preempt-by-eviction"),
            id="preempting by deletion",
        ),
        pytest.param("deploy/components/surge", lambda: grants("surge") - grants("enforce"), id="surge"),
        pytest.param(
            "deploy/components/devices",
            lambda: grants_with("enforce", "devices") - grants("enforce"),
            id="devices",
        ),
        pytest.param(
            "deploy/components/vertical-pod-autoscalers",
            lambda: grants_with("enforce", "vertical-pod-autoscalers") - grants("enforce"),
            id="recommended requests",
        ),
        pytest.param(
            "deploy/components/automatic-groups",
            lambda: grants_with("enforce", "automatic-groups") - grants("enforce"),
            id="owners of groups",
        ),
        pytest.param(
            "deploy/components/adoption",
            lambda: grants_with("enforce", "adoption") - grants("enforce"),
            id="adoption",
        ),
    ],
)
def test_those_of_what_is_added(manifest: str, added: Callable[[], set[tuple[str, str, str]]]) -> None:
    """All of them, and no others."""
    assert reviewed(manifest) == added()
