"""Relists policies periodically to catch changes that the watch missed.

kopf resumes a broken watch by listing; it reports what exists, but not what was deleted meanwhile. A policy
that does not exist must not stay in effect.

Also, kopf 1.45 ignores the definitions in its first list. If the policies' definition is created between
kopf's discovery of the served resources and its watch of definitions, kopf does not watch policies at all.

Deleting the definition deletes its policies. Two lists in a row that do not find the resource mean that.
"""

from plimsoll.policy_controller.controller import PolicyController
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import PolicySource
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome

#: Seconds between two relists.
EVERY_S = 60.0

#: Seconds until the first, after which it is known which policies were deleted before this process led.
FIRST_S = 5.0

#: Lists in a row without the resource after which its policies count as deleted.
ABSENT = 2


async def reconcile(
    policies: PolicyController, source: PolicySource, clock: Clock, observer: Observer
) -> None:
    """Relist until cancelled."""
    absent = 0  # lists in a row for which the server did not have the resource
    pause = FIRST_S
    while True:
        await clock.sleep(pause)
        pause = EVERY_S
        before = dict(policies.uids())
        answer, documents = await source.list()
        if not answer.is_done:
            problem = f"policies cannot be compared: {answer.message}"
            observer.watch_failed("schedulingpolicies", problem, answer.status)
            absent = absent + 1 if answer.verdict is WriteOutcome.GONE else 0
            if absent < ABSENT:
                continue
        else:
            absent = 0
            observer.watch_recovered("schedulingpolicies")
        listed = {str(each["metadata"]["name"]): each for each in documents}
        for name, document in listed.items():
            is_new = name not in before and name not in policies.uids()
            if is_new or 0 < policies.generations().get(name, 0) < int(document["metadata"]["generation"]):
                await policies.set(document)
        for name, uid in before.items():
            if policies.uids().get(name) != uid:
                continue  # a watch event arrived meanwhile and is newer than this list
            if name not in listed:
                await policies.remove(name)
            elif str(listed[name]["metadata"].get("uid", "")) != uid:
                await policies.remove(name)
                await policies.set(listed[name])
        policies.compared()
