"""One operator for all tests of a file; each test has a namespace of its own."""

import itertools
from pathlib import Path

import kubernetes_asyncio  # noqa: F401 - used by the operator, which would wait without it
import pytest
from kopf.testing import KopfRunner

from roadstead.certificates import write_certificate

HERE = Path(__file__).parent
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def operator(roadstead_process, tmp_path_factory):
    certificates = tmp_path_factory.mktemp("certificates")
    write_certificate(certificates)
    roadstead_process.apply(HERE / "crd.yaml")
    command = ["run", "--all-namespaces", "--standalone", str(HERE / "databases.py")]
    environment = {**roadstead_process.environment, "CERTIFICATES": str(certificates)}
    with KopfRunner(command, env=environment):
        # The operator creates these as soon as its server of webhooks listens.
        for kind in ("mutating", "validating"):
            configured = f"{kind}webhookconfigurations/databases.example.com"
            roadstead_process.wait_for(configured, until=lambda one: one.get("webhooks"), timeout_s=240)
        yield roadstead_process
        for kind in ("mutating", "validating"):
            roadstead_process.delete(f"{kind}webhookconfigurations/databases.example.com")


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
        return self.cluster.wait_for(reference, self.name, timeout_s=240, **until)

    def gone(self, reference):
        self.cluster.wait_for_deletion(reference, self.name, timeout_s=240)

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
