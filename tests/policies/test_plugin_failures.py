"""Plugins that fail are named in the status of the policies that use them."""

import asyncio

from plimsoll.policies.plugin_failures import SENTENCE, PluginFailures
from plimsoll.testing.fakes import settled


def test_the_first_failure_at_a_point_is_kept() -> None:
    """Later ones are the metrics' business."""
    failures = PluginFailures()

    failures.plugin_failed("A", "filter", "ValueError: 1")
    failures.plugin_failed("A", "filter", "ValueError: 2")
    failures.plugin_failed("B", "score", "ValueError: 3")

    assert failures.of({"A", "C"}) == ['plugin "A" failed at filter: ValueError: 1']


def test_a_changed_policy_gives_another_chance() -> None:
    """What its plugins did is forgotten; of others it is not."""
    failures = PluginFailures()
    failures.plugin_failed("A", "filter", "x")
    failures.plugin_failed("B", "filter", "x")

    failures.forgive({"A"})

    assert failures.of({"A", "B"}) == ['plugin "B" failed at filter: x']


def test_sentences_have_an_end() -> None:
    """A plugin may raise a novel."""
    failures = PluginFailures()

    failures.plugin_failed("A", "filter", "x" * 5000)

    assert len(failures.of({"A"})[0]) == SENTENCE


async def test_each_new_kind_of_failure_is_reported_once() -> None:
    """A plugin that fails for every pod does not write a status for every pod."""
    failures, told = PluginFailures(), []

    async def tell() -> None:
        told.append(failures.of({"A"}))

    task = asyncio.ensure_future(failures.run(tell))
    for _ in range(3):
        failures.plugin_failed("A", "filter", "x")
        await settled()
    failures.plugin_failed("A", "score", "y")
    await settled()
    task.cancel()

    assert [len(each) for each in told] == [1, 2]
