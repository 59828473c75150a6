"""A gang, a policy with a cron that is hastened, and gated pods, each of which comes a second time."""

from __future__ import annotations

from roadstead.store.api import Write
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import NAMESPACE, POLICIES, policy
from simulation.world.gangs import GROUP_LABEL, GROUPS
from simulation.world.part import Part
from simulation.world.pauses import RUN

#: Of pods with gates.
GATED = "plimsoll-gated"
GATE = "simulated.test/gate"

#: Of a gang's members, in the order in which they are wanted.
SIZE = 3

PLAIN: Obj = {}
WITHOUT_GATES: Obj = {"plugins": {"multiPoint": {"disabled": [{"name": "SchedulingGates"}]}}}
WITHOUT_PREEMPTION: Obj = {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}


class OnceMore(Part):
    """Each of it ends and begins again, under its name."""

    def begin(self) -> None:
        """A gang of a Deployment, pods with gates, and two policies."""
        self._group(2)
        self.deployment("twice", SIZE, {GROUP_LABEL: "twice"})
        self.api.create(POLICIES, policy("gated", scheduling={"schedulerName": GATED}))
        spec: Obj = {
            "mode": "Enforce",
            "schedule": {"cron": "* * * * *", "triggers": ["NodeAdded", "NodeTaintsChanged"]},
            "strategies": [{"name": "RemovePodsViolatingNodeTaints"}, {"name": "RemoveDuplicates"}],
            "evictor": {"minReplicas": 1, "minPodAge": "1s"},
        }
        self.api.create(POLICIES, policy("hastened", rebalancing=spec))

    def act(self) -> None:
        """One thing at a time."""
        ways = (
            self._stop_or_start,
            self._stop_or_start,
            self._regroup,
            self._run,
            self._reprofile,
            self._gate,
        )
        self.random.choice(ways)()

    def end(self) -> None:
        """The gang is whole, the profile is plain, and no pod has a gate."""
        if self.api.find(GROUPS, NAMESPACE, "twice") is None:
            self._group(2)
        self._scale(SIZE)
        self._set_profile(PLAIN)
        for each in self.cluster.objects("pods"):
            if each["spec"].get("schedulerName") == GATED and each["spec"].get("schedulingGates"):
                self._ungate(each)

    # -- a gang --------------------------------------------------------------------------------------------

    def _group(self, least: int) -> None:
        spec = {"minMember": least, "scheduleTimeoutSeconds": self.random.choice((5, 20))}
        self.create(GROUPS, "twice", apiVersion="plimsoll.dev/v1alpha1", spec=spec)

    def _scale(self, replicas: int) -> None:
        found = self.api.find("deployments.apps", NAMESPACE, "twice")
        if found is not None:
            changed = copied(found)
            changed["spec"]["replicas"] = replicas
            self.api.update("deployments.apps", changed)

    def _stop_or_start(self) -> None:
        """All members go, or all come again."""
        found = self.api.get("deployments.apps", NAMESPACE, "twice")
        self._scale(0 if found["spec"]["replicas"] else SIZE)

    def _regroup(self) -> None:
        """The group goes, and comes again immediately or later, with members that run or none."""
        if self.api.find(GROUPS, NAMESPACE, "twice") is None:
            self._group(self.random.randint(1, SIZE))
            return
        self.api.delete(GROUPS, NAMESPACE, "twice")
        if self.random.random() < 0.5:
            self._group(self.random.randint(1, SIZE))

    # -- policies ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Somebody does not wait for the cron."""
        found = copied(self.api.get(POLICIES, None, "hastened"))
        found["metadata"].setdefault("annotations", {})[RUN] = self.name("now")
        self.api.update(POLICIES, found)

    def _reprofile(self) -> None:
        """Gates count no more, or again."""
        self._set_profile(self.random.choice((PLAIN, WITHOUT_GATES, WITHOUT_PREEMPTION)))

    def _set_profile(self, profile: Obj) -> None:
        found = self.api.find(POLICIES, None, "gated")
        if found is not None:
            spec = {"scheduling": {"schedulerName": GATED, **profile}}
            self.api.update(POLICIES, {**copied(found), "spec": spec})

    def _gate(self) -> None:
        """A pod more, or one that may be placed now."""
        gated = [each for each in self.cluster.objects("pods") if each["spec"].get("schedulerName") == GATED]
        waiting = [each for each in gated if each["spec"].get("schedulingGates")]
        if waiting and self.random.random() < 0.5:
            self._ungate(self.random.choice(waiting))
        elif len(gated) < 2 * SIZE:
            spec: Obj = {
                "schedulerName": GATED,
                "schedulingGates": [{"name": GATE}],
                "containers": [self.container()],
            }
            self.create("pods", self.name("gated"), spec=spec)

    def _ungate(self, pod: Obj) -> None:
        free = copied(pod)
        free["spec"]["schedulingGates"] = []
        self.api.update("pods", free, Write())
