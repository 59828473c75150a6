"""Keys below plimsoll.dev/ that mean nothing are found on nodes, namespaces, workloads and policies."""

from plimsoll.access.rights import Right
from plimsoll.check.our_keys import judged_keys
from plimsoll.preflight.findings import Level, Unread
from plimsoll.preflight.workloads import workload


def test_a_key_without_a_meaning_is_said_wherever_it_is() -> None:
    """On a workload, its pod template, a policy, a node and a namespace; known and other keys are right."""
    template = {"metadata": {"annotations": {"plimsoll.dev/evikt": "false", "other.dev/x": "1"}}}
    web = workload(
        "Deployment",
        {
            "metadata": {"name": "web", "namespace": "shop", "labels": {"plimsoll.dev/queue": "a"}},
            "spec": {"template": template},
        },
    )
    policy = {"metadata": {"name": "p", "annotations": {"plimsoll.dev/run": "1", "plimsoll.dev/rerun": "1"}}}
    keys = {"Node n1": ("plimsoll.dev/consolidate",), "Namespace shop": ("plimsoll.dev/evict",)}

    found = list(judged_keys(keys, (web,), (policy,)))

    assert [(each.subject, each.message) for each in found] == [
        ("Deployment shop/web", "plimsoll.dev/evikt has no meaning; did you mean plimsoll.dev/evict?"),
        ("SchedulingPolicy p", "plimsoll.dev/rerun has no meaning; did you mean plimsoll.dev/run?"),
        ("Node n1", "plimsoll.dev/consolidate has no meaning; did you mean plimsoll.dev/consolidating?"),
    ]


def test_nodes_that_cannot_be_read_are_said() -> None:
    """The rest is judged."""
    (found,) = judged_keys(Unread(Right("", "nodes", "list"), "", 403, "no"), (), ())

    assert found.level is Level.WARNING
    assert "nodes" in found.message
