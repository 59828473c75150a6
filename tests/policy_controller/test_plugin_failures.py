"""Plugins that fail are named in the status of the policies that use them."""

from plimsoll.policies.profiles import SENTENCE, SLOW_CALLS, SLOW_S, PluginFailures
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


def test_slow_calls_in_a_row_are_reported_when_they_begin_to_count_and_when_they_end() -> None:
    """Each of these changes the conditions of policies once; fewer in a row change nothing."""
    conditions = Signal()
    failures = PluginFailures(conditions, {"Ours"})

    def called(*seconds: float, plugin: str = "A", point: str = "filter") -> tuple[int, bool]:
        for each in seconds:
            failures.plugin_called(plugin, point, False, each)  # noqa: FBT003 - as the engine calls it
        return conditions.count, bool(failures.slow({"A", "Ours"}))

    slow, fast = 2 * SLOW_S, SLOW_S
    assert called(*[slow] * (SLOW_CALLS - 1)) == (0, False)
    assert called(fast) == (0, False)
    assert called(*[slow] * SLOW_CALLS) == (1, True)
    assert called(slow) == (1, True)
    assert called(fast) == (2, False)
    assert called(fast) == (2, False)
    assert called(*[slow] * SLOW_CALLS, plugin="Ours") == (2, False)
    assert called(*[slow] * SLOW_CALLS, point="bind") == (2, False)
