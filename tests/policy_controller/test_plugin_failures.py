"""Plugins that fail are named in the status of the policies that use them."""

from plimsoll.policies.profiles import SENTENCE, PluginFailures
from plimsoll.timing.signal import Signal


def test_the_first_failure_at_a_point_is_kept() -> None:
    """Later ones are the metrics' business."""
    failures = PluginFailures(Signal())

    failures.plugin_failed("A", "filter", "ValueError: 1")
    failures.plugin_failed("A", "filter", "ValueError: 2")
    failures.plugin_failed("B", "score", "ValueError: 3")

    assert failures.of({"A", "C"}) == ['plugin "A" failed at filter: ValueError: 1']


def test_a_changed_policy_gives_another_chance() -> None:
    """What its plugins did is forgotten; of others it is not."""
    failures = PluginFailures(Signal())
    failures.plugin_failed("A", "filter", "x")
    failures.plugin_failed("B", "filter", "x")

    failures.forgive({"A"})

    assert failures.of({"A", "B"}) == ['plugin "B" failed at filter: x']


def test_sentences_have_an_end() -> None:
    """A plugin may raise a novel."""
    failures = PluginFailures(Signal())

    failures.plugin_failed("A", "filter", "x" * 5000)

    assert len(failures.of({"A"})[0]) == SENTENCE + 1


def test_each_new_kind_of_failure_is_reported_once() -> None:
    """A plugin that fails for every pod does not write a status for every pod."""
    conditions = Signal()
    failures = PluginFailures(conditions)

    for _ in range(3):
        failures.plugin_failed("A", "filter", "x")
    failures.plugin_failed("A", "score", "y")

    assert conditions.count == 2
    assert len(failures.of({"A"})) == 2
