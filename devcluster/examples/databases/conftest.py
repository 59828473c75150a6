"""One operator for all tests of a file; each test has a namespace of its own."""

import itertools
from pathlib import Path

import pytest
from kopf.testing import KopfRunner

HERE = Path(__file__).parent
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def operator(roadstead_process):
    roadstead_process.apply(HERE / "crd.yaml")
    command = ["run", "--all-namespaces", "--standalone", str(HERE / "databases.py")]
    with KopfRunner(command, env=roadstead_process.environment):
        yield roadstead_process


class Namespace:
    """A namespace, and what a test does in it."""

    def __init__(self, cluster, name):
        self.cluster, self.name, self.faults = cluster, name, cluster.faults

    def database(self, name="main", size=1, **spec):
        body = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": name}}
        (made,) = self.cluster.apply({**body, "spec": {"size": size, **spec}}, namespace=self.name)
        return made

    def ready(self, name="main", **spec):
        self.database(name, **spec)
        return self.wait(f"databases/{name}", condition="Ready")

    def wait(self, reference, **until):
        return self.cluster.wait_for(reference, self.name, timeout_s=60, **until)

    def gone(self, reference):
        self.cluster.wait_for_deletion(reference, self.name, timeout_s=60)

    def get(self, reference):
        return self.cluster.get(reference, self.name)

    def delete(self, reference):
        self.cluster.delete(reference, self.name)

    def list(self, resource):
        return self.cluster.list(resource, self.name)


@pytest.fixture
def namespace(operator):
    name = f"test-{next(NUMBERS)}"
    operator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield Namespace(operator, name)
    operator.delete(f"namespaces/{name}")
