"""docs/adr/0007 quotes the message for a pod with resource claims."""

from pathlib import Path

from plimsoll.engine.attempt import schedule
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

RECORD = Path(__file__).parents[2] / "docs" / "adr" / "0007-dynamic-resources.md"


def test_the_record_quotes_the_sentence() -> None:
    """Word for word, for three nodes."""
    cluster = a_cluster(a_node(f"n{number}") for number in range(3))
    profile = build_profile(
        ProfileConfig("default-scheduler"), Registry(IN_TREE), [Enabled(name) for name in DEFAULT_PLUGINS]
    )
    pod = a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])

    decision = schedule(ProfileScheduler(profile, cluster), cluster.templates.info(pod))

    assert f"  {decision.message}\n" in RECORD.read_text(encoding="utf-8")


def test_an_extended_resource_that_only_a_device_class_provides_is_insufficient() -> None:
    """As the record says, in the words of NodeResourcesFit."""
    cluster = a_cluster([a_node("n")])
    profile = build_profile(
        ProfileConfig("default-scheduler"), Registry(IN_TREE), [Enabled(name) for name in DEFAULT_PLUGINS]
    )
    pod = a_pod(requests={"example.com/gpu": 1})

    decision = schedule(ProfileScheduler(profile, cluster), cluster.templates.info(pod))

    assert decision.message.startswith("0/1 nodes are available: 1 Insufficient example.com/gpu.")
