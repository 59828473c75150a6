"""Relists policies periodically to catch what the watch missed.

kopf resumes a broken watch by listing, and reports what exists, but not what was deleted meanwhile. A policy
that does not exist must not go on deciding. And kopf 1.45 watches no policies at all if their definition is
made after it has asked which resources are served and before it watches definitions: of those it lists first,
it looks at none.
"""

from plimsoll.policies.controller import Policies
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import PolicySource
from plimsoll.ports.observer import Observer

#: Seconds between two comparisons.
EVERY_S = 60.0


async def reconcile(policies: Policies, source: PolicySource, clock: Clock, observer: Observer) -> None:
    """Compare until cancelled."""
    while True:
        await clock.sleep(EVERY_S)
        before = dict(policies.uids())
        answer, documents = await source.list()
        if not answer.is_done:
            problem = f"policies cannot be compared: {answer.message}"
            observer.watch_failed("schedulingpolicies", problem, answer.status)
            continue
        observer.watch_recovered("schedulingpolicies")
        listed = {str(each["metadata"]["name"]): each for each in documents}
        for name, document in listed.items():
            is_new = name not in before and name not in policies.uids()
            if is_new or 0 < policies.generations().get(name, 0) < int(document["metadata"]["generation"]):
                await policies.set(document)
        for name, uid in before.items():
            if policies.uids().get(name) != uid:
                continue  # a watch event came meanwhile, and is newer than this list
            if name not in listed:
                await policies.remove(name)
            elif str(listed[name]["metadata"].get("uid", "")) != uid:
                await policies.remove(name)
                await policies.set(listed[name])
        policies.compared()
