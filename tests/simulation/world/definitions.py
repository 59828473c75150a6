"""Custom resource definitions that somebody deletes, with all objects of theirs, and creates again."""

from __future__ import annotations

from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.cluster import RECORDS, definitions
from simulation.world.part import Part

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class Definitions(Part):
    """One after the other; policies and groups are applied again, records are lost."""

    def begin(self) -> None:
        """Nothing is gone yet."""
        self._lost: dict[str, list[Obj]] = {}

    def act(self) -> None:
        """Delete one, or create one again that is gone."""
        gone = sorted(self._lost)
        if gone and self.random.random() < 0.5:
            self._restore(self.random.choice(gone))
            return
        names = [each["metadata"]["name"] for each in definitions()]
        name = self.random.choice([*names, RECORDS])
        if name in self._lost:
            return
        objects = [copied(each) for each in self.cluster.objects(name)] if name != RECORDS else []
        self.api.delete(CRDS, None, name)
        self._lost[name] = objects
        if self.random.random() < 0.3:  # a tool that replaces it does both immediately
            self._restore(name)

    def end(self) -> None:
        """All are there again; finalizers that people have added hold none."""
        for name in sorted(self._lost):
            for each in self.cluster.objects(name):
                self.api.update(name, {**each, "metadata": {**each["metadata"], "finalizers": []}})
            self._restore(name)

    def _restore(self, name: str) -> None:
        """Create a definition, and what was applied of it.

        Raises:
            StatusError: It is still being deleted.
        """
        self.api.create(CRDS, next(one for one in definitions() if one["metadata"]["name"] == name))
        for each in self._lost.pop(name):
            meta = {key: each["metadata"][key] for key in ("name", "namespace") if key in each["metadata"]}
            kept = {"apiVersion": each["apiVersion"], "metadata": meta, "spec": each["spec"]}
            labels = each["metadata"].get("labels")
            try:
                self.api.create(name, {**kept, "metadata": {**meta, "labels": labels}} if labels else kept)
            except StatusError:
                continue  # its namespace is gone meanwhile
