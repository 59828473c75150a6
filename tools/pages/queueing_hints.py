"""Writes docs/queueing.md from the events and hints that plugins declare.

``make docs`` runs ``python -m pages.queueing_hints docs/queueing.md``; a test fails when the page
lags behind.
"""

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plimsoll.framework import ActionType, EnqueueExtensions, EventWithHint, HintByValue, Plugin
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.scheduling.queue.queue import FLUSH_AFTER_S, FLUSH_EVERY_S
from plimsoll.scheduling.queue.queued_pod import INITIAL_BACKOFF_S, MAX_BACKOFF_S
from plimsoll.scheduling.queue.queueing_hints import can_reject

HEAD = f"""# When a pod is tried again

A pod that no node takes is *unschedulable*: it sleeps until something happens that may change the answer of
a plugin that rejected it. What that is, each plugin declares; a *hint* may look closer at each change. So a
label on some node does not wake ten thousand pods that lack cpu.

| A pod that | waits until |
| --- | --- |
| is gated | an event of the PreEnqueue plugin that holds it, or a change of the pod, and the plugin agrees |
| was rejected | an event in the table below, or {FLUSH_AFTER_S / 60:.0f} minutes are over |
| was woken, or failed | its back-off is over: {INITIAL_BACKOFF_S:.0f}, 2, 4, 8, then {MAX_BACKOFF_S:.0f} s |
| is active | pods of higher priority, and those that have waited longer, were tried |

The back-off counts from the last attempt. While the active queue is empty, rejected pods skip back-off; pods
that hit an error do not. A preemptor whose last victim has left always skips it. Every {FLUSH_EVERY_S:.0f} s,
unschedulable pods whose time is over are flushed.

What happens while a pod is being tried counts as well: it is remembered, and weighed when the attempt fails.
A rejection with the status *Pending* (at Reserve or Permit) means that somebody outside has to act; what the
plugin has registered for skips the back-off then.

A plugin that declares nothing is woken by every event. A hint that raises wakes its pod, and is counted in
`plimsoll_scheduler_plugin_failures_total`. How to declare: [writing a plugin](writing-a-plugin.md).

To see why pods wait, and whether they wake ([metrics](metrics.md)):

- `plimsoll_scheduler_unschedulable_pods` says which plugins reject pods;
- `plimsoll_scheduler_queue_incoming_pods_total` says which events put how many into which queue;
- `plimsoll_scheduler_pod_scheduled_after_flush_total` counts pods that only time has helped: if it rises,
  some plugin's hints are too strict.

## Plugins and events

Written by `make docs` from the plugins' declarations: change those. Events are called as in kube-scheduler's
metrics; an *AssignedPod* has a node, or gave up one that it was promised; an *UnschedulablePod* is the
waiting pod itself.

| Plugin | Event | The pod is tried again when |
| --- | --- | --- |
"""

TAIL = """
Pods that come to a node, or change there, are offered to few of the pods that PodTopologySpread and
InterPodAffinity have rejected, as upstream does it: to those that PodTopologySpread rejected in the same
namespace, and to those with a required term that the pod matches, or matched before. Deletions are
offered to all, and so is everything to pods of other plugins.

Differs from kube-scheduler: a pod that is woken because another attempt of ours failed (its room is free
again) sits out its back-off even while the active queue is empty, or two pods that are refused again and
again would wake each other without a pause; and an update of a waiting pod that no decision reads, such as
the condition with its rejection, is no event.
"""


def rows(plugin: type[Plugin]) -> list[tuple[str, str]]:
    """Event and condition, of one plugin that can reject pods, in the order of its declaration."""
    instance: Any = plugin(plugin.args_model())
    if not isinstance(instance, EnqueueExtensions):
        return [("every event", "always")] if can_reject(instance) else []
    declared = [(each, _condition(each)) for each in instance.events_to_register()]
    if not declared:
        return [("none", "never, but for the flush")]
    return [(f"{each.resource} {_action(each.actions)}", condition) for each, condition in declared]


def _action(actions: ActionType) -> str:
    return actions.label.replace("/", ", ")


def _condition(registration: EventWithHint) -> str:
    if registration.hint is None:
        return "always"
    hint = registration.hint
    said = inspect.getdoc(hint.helps if isinstance(hint, HintByValue) else hint)
    if not said:
        return "its hint says so"
    first = " ".join(said.split("\n\n")[0].split()).rstrip(".")
    return first[:1].lower() + first[1:]


def page(plugins: Iterable[type[Plugin]] = IN_TREE) -> str:
    """The page, in Markdown: plugins in the order of the default profile, then the others."""
    order = {name: place for place, name in enumerate(DEFAULT_PLUGINS)}
    lines = [
        f"| {plugin.name} | {event} | {condition} |"
        for plugin in sorted(plugins, key=lambda each: (order.get(each.name, len(order)), each.name))
        for event, condition in rows(plugin)
    ]
    return HEAD + "\n".join(lines) + "\n" + TAIL


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
