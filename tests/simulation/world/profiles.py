"""A second scheduler name with its pods; its profile has changed plugins."""

from __future__ import annotations

from roadstead.values.resources import Obj
from simulation.cluster import POLICIES, policy
from simulation.world.part import Part

SECOND = "plimsoll-batch"

PROFILES: tuple[Obj, ...] = (
    {},
    {
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
                },
            }
        ],
    },
    {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}},
    {"plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}, {"name": "InterPodAffinity"}]}}},
    {
        "pluginConfig": [
            {
                "name": "PodTopologySpread",
                "args": {
                    "defaultingType": "List",
                    "defaultConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                        }
                    ],
                },
            }
        ]
    },
    {"fairShare": {"queues": [{"name": "research", "weight": 2}], "reclaim": "AboveDeserved"}},
)


class Profiles(Part):
    """Pods of two schedulers on the same nodes."""

    def begin(self) -> None:
        """The policy and a few workloads of its own."""
        spec = {"schedulerName": SECOND, **self.random.choice(PROFILES)}
        self.api.create(POLICIES, policy("second", scheduling=spec))
        for _ in range(self.random.randint(2, 4)):
            self._add(self.random.randint(1, 3))

    def act(self) -> None:
        """More of them, or another profile."""
        if self.random.random() < 0.5 and self._made < 6:
            self._add(1)
            return
        second = self.api.find(POLICIES, None, "second")
        if second is not None:
            spec = {"schedulerName": SECOND, **self.random.choice(PROFILES)}
            self.api.update(POLICIES, {**second, "spec": {**second["spec"], "scheduling": spec}})

    def _add(self, replicas: int) -> None:
        labels = {"plimsoll.dev/queue": "research"} if self.random.random() < 0.5 else {}
        self.deployment(self.name("batch"), replicas, labels, schedulerName=SECOND)
