"""The only pod of a Deployment on a node whose taint it does not tolerate, and a policy that may surge it."""

import asyncio
from typing import Any

from planning.surge_builders import READY, a_deployment, a_replica_set, an_only_pod
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import ObjectAdded, PodAdded, PodDeleted, PodUpdated
from plimsoll.model.kinds.deployment import SURGED
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.fakes import FakeRollouts
from rebalancing.scene import Scene, a_policy, web

OLD = an_only_pod(node="bad", cpu="100m")


def a_surging_policy(mode: str = "Enforce", **rebalancing: Any) -> SchedulingPolicy:
    return a_policy(mode, surge=True, **rebalancing)


class SurgeScene(Scene):
    """The scene without its other pods."""

    def __init__(self, *documents: Any, rollouts: Any = None, old: Any = OLD, surges: Any = None) -> None:
        deployment = a_deployment(metadata={"resourceVersion": "3"}, annotations={"team": "a"})
        super().__init__(*documents, rollouts=rollouts or FakeRollouts(deployment), surges=surges)
        self.gone(web(1, "bad"))
        self.gone(web(2, "good"))
        self.tell(ObjectAdded(a_replica_set()))
        if old is not None:
            self.tell(PodAdded(old))

    @property
    def mark(self) -> str:
        """The only record's mark."""
        return f"{self.record['metadata']['name']} from bad"

    def replacement(
        self,
        node: str = "",
        *,
        ready: bool = False,
        mark: Any = None,
        digest: str = "2",
        name: str = "web-2-y",
    ) -> Pod:
        """A pod as the rollout makes it."""
        return an_only_pod(
            name,
            node=node,
            digest=digest,
            cpu="100m",
            annotations={SURGED: self.mark if mark is None else mark},
            status=READY if ready else {},
        )

    def comes(self, node: str = "", *, ready: bool = False, **kwargs: Any) -> None:
        """The rollout brings its pod up."""
        digest = kwargs.get("digest", "2")
        waiting = self.replacement(**kwargs)
        self.tell(ObjectAdded(a_replica_set(digest=digest)), PodAdded(waiting))
        if node:
            self.tell(PodUpdated(waiting, self.replacement(node, ready=ready, **kwargs)))

    def becomes_ready(self, node: str = "good") -> None:
        """And it is ready."""
        self.tell(PodUpdated(self.replacement(node), self.replacement(node, ready=True)))

    def leaves(self, pod: Any = OLD) -> None:
        """The Deployment's controller takes the old pod away."""
        self.tell(PodDeleted(pod))

    async def run_while_time_passes(self, seconds: int) -> None:
        """One run of the policy, in which somebody has to wait; what is left of it is cut off."""
        run = asyncio.create_task(self.run())
        await self.clock.advance(seconds)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
