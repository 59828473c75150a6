"""PodGroups: pods that start together or not at all."""

from __future__ import annotations

from roadstead.values.copies import copied
from simulation.cluster import NAMESPACE, SCHEDULER
from simulation.world.part import Part

GROUPS = "podgroups.plimsoll.dev"
GROUP_LABEL = "plimsoll.dev/pod-group"

#: Gangs in one run, at most.
MOST = 4


class Gangs(Part):
    """Some that fit and some that do not, of Deployments and of single pods."""

    def begin(self) -> None:
        """One or two."""
        for _ in range(self.random.randint(1, 2)):
            self._add()

    def act(self) -> None:
        """One more; or somebody wants fewer, or more, members of one, or deletes one."""
        drawn = self.random.random()
        if drawn < 0.4:
            self._add()
            return
        group = self.chosen(GROUPS)
        if group is None:
            return
        if drawn < 0.8:
            group["spec"]["minMember"] = self.random.randint(1, 4)
            self.api.update(GROUPS, group)
        elif drawn < 0.9:
            kept = {"apiVersion": group["apiVersion"], "spec": copied(group["spec"])}
            name = group["metadata"]["name"]
            self.api.delete(GROUPS, NAMESPACE, name)
            self.create(GROUPS, name, **kept)

    def _add(self) -> None:
        if self._made >= MOST:
            return
        name, size = self.name("gang"), self.random.randint(2, 4)
        spec = {"minMember": self.random.randint(2, size)}
        if self.random.random() < 0.5:
            spec["scheduleTimeoutSeconds"] = self.random.choice((5, 20))
        if self.random.random() < 0.2:
            spec["minMember"] = 30  # it never starts
        labels = {GROUP_LABEL: name}
        group_first = self.random.random() < 0.7
        if group_first:
            self.create(GROUPS, name, apiVersion="plimsoll.dev/v1alpha1", spec=spec)
        if self.random.random() < 0.6:
            self.deployment(name, size, labels)
        else:
            for number in range(size):
                pod = {"schedulerName": SCHEDULER, "containers": [self.container()]}
                self.create("pods", f"{name}-{number}", metadata={"labels": labels}, spec=pod)
        if not group_first:
            self.create(GROUPS, name, apiVersion="plimsoll.dev/v1alpha1", spec=spec)
