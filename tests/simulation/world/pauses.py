"""People who stop, suspend and run policies, or protect pods and namespaces by annotations."""

from __future__ import annotations

from roadstead.values.copies import copied
from simulation.cluster import NAMESPACE, POLICIES
from simulation.world.part import Part

STOP, RUN, EVICT = "plimsoll.dev/stop", "plimsoll.dev/run", "plimsoll.dev/evict"

#: The operator's own namespace.
HOME = "kube-system"


class Pauses(Part):
    """One thing at a time, and all is as before in the end."""

    def act(self) -> None:
        """Press or release the stop button; suspend, resume or run a policy; protect a pod."""
        self.random.choice((self._stop, self._suspend, self._run, self._run, self._protect))()

    def end(self) -> None:
        """Nothing is stopped, suspended or protected."""
        self._annotate("namespaces", HOME, STOP, None)
        self._annotate("namespaces", NAMESPACE, EVICT, None)
        for each in self.cluster.objects(POLICIES):
            if each["spec"].get("suspend"):
                resumed = copied(each)
                resumed["spec"]["suspend"] = False
                self.api.update(POLICIES, resumed)

    def _stop(self) -> None:
        namespace = self.api.get("namespaces", None, HOME)
        is_pressed = STOP in (namespace["metadata"].get("annotations") or {})
        self._annotate("namespaces", HOME, STOP, None if is_pressed else "true")

    def _suspend(self) -> None:
        found = self.chosen(POLICIES)
        if found is not None:
            found["spec"]["suspend"] = not found["spec"].get("suspend", False)
            self.api.update(POLICIES, found)

    def _run(self) -> None:
        found = self.chosen(POLICIES)
        if found is not None:
            found["metadata"].setdefault("annotations", {})[RUN] = self.name("now")
            self.api.update(POLICIES, found)

    def _protect(self) -> None:
        if self.random.random() < 0.3:
            self._annotate("namespaces", NAMESPACE, EVICT, self.random.choice((None, "false")))
            return
        pod = self.chosen("pods")
        if pod is not None:
            pod["metadata"].setdefault("annotations", {})[EVICT] = self.random.choice(("false", "true"))
            self.api.update("pods", pod)

    def _annotate(self, resource: str, name: str, key: str, value: str | None) -> None:
        self.api.patch(resource, None, name, {"metadata": {"annotations": {key: value}}})
