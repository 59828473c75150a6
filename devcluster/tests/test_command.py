"""``roadstead`` as a user starts it, with kubectl where there is one."""

import json
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead.clients import RunningCluster
from roadstead.processes import START_S, Launch
from roadstead.pytest_plugin import StartRoadstead

#: Seconds that anything has to end or to answer, on a busy machine.
END_S = 60.0


def kubectl(cluster: Any, *arguments: Any) -> Any:
    """Run kubectl and return what it prints."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl was not run, for it is not installed; urllib took its place")
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_begins_with_ready_nodes_in_three_zones(start_roadstead: StartRoadstead) -> None:
    """Nodes asked for on the command line are registered when the kubeconfig is there."""
    cluster = start_roadstead(nodes=4, node_cpu="2500m")

    request = urllib.request.Request(f"{cluster.plain_url}/api/v1/nodes")
    request.add_header("Authorization", f"Bearer {cluster.token}")
    with urllib.request.urlopen(request) as response:
        nodes = json.load(response)["items"]

    assert [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes] == [
        "zone-a",
        "zone-b",
        "zone-c",
        "zone-a",
    ]
    for node in nodes:
        ready = [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"]
        assert ready == ["True"]
        assert node["status"]["allocatable"]["cpu"] == "2500m"


def test_refuses_who_shows_no_token(roadstead_process: RunningCluster) -> None:
    """Without a token the answer is 401, with and without TLS; /readyz is open."""
    trusting = ssl._create_unverified_context()

    for url in (roadstead_process.url, roadstead_process.plain_url):
        with urllib.request.urlopen(f"{url}/readyz", context=trusting) as response:
            assert response.read() == b"ok"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/v1/nodes", context=trusting)
        assert refused.value.code == 401
        refused.value.close()


def test_kubectl_trusts_it_and_sends_its_token(roadstead_process: RunningCluster) -> None:
    """The kubeconfig is complete: kubectl verifies the certificate and is let in."""
    listed = json.loads(kubectl(roadstead_process, "get", "--raw", "/api/v1/nodes"))

    assert listed["kind"] == "NodeList"


def test_a_pod_runs_is_measured_and_leaves(roadstead_process: RunningCluster) -> None:
    """Over HTTP: a bound pod becomes Running, uses what it requests, and goes when it is deleted."""
    if not roadstead_process.simulated:
        pytest.skip("pods were not run by simulated kubelets, for the cluster named has its own")
    pods = f"{roadstead_process.plain_url}/api/v1/namespaces/default/pods"
    usage = f"{roadstead_process.plain_url}/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"

    def call(method: Any, url: Any, body: Any = None) -> Any:
        request = urllib.request.Request(url, json.dumps(body).encode() if body else None, method=method)
        request.add_header("Authorization", f"Bearer {roadstead_process.token}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as refused:
            refused.close()
            return {"code": refused.code}

    def eventually(url: Any, until: Any) -> Any:
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline:
            if until(body := call("GET", url)):
                return body
            time.sleep(0.02)
        return pytest.fail(f"never came about: {body}")

    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "300m"}}}
    spec = {"nodeName": "node-0002", "containers": [container], "terminationGracePeriodSeconds": 0}
    call("POST", pods, {"metadata": {"name": "lives"}, "spec": spec})

    eventually(f"{pods}/lives", lambda pod: pod["status"]["phase"] == "Running")
    measured = call("GET", f"{usage}/lives")
    call("DELETE", f"{pods}/lives")

    assert measured["containers"] == [{"name": "main", "usage": {"cpu": "300000000n", "memory": "16384Ki"}}]
    eventually(f"{pods}/lives", lambda pod: pod.get("code") == 404)


def test_ends_well_on_sigterm(tmp_path: Path) -> None:
    """SIGTERM ends the command with status 0."""
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "roadstead", "--kubeconfig", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()

        process.send_signal(signal.SIGTERM)

        assert process.wait(END_S) == 0
    assert "ready" in first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--node-cpu", "lots"], "'lots' is no quantity", id="a-quantity-that-is-none"),
        pytest.param(["--nodes", "-1"], "--nodes", id="a-negative-count"),
        pytest.param(["--port", "70000"], "--port", id="a-port-out-of-range"),
    ],
)
def test_refuses_bad_options_in_one_sentence(tmp_path: Path, options: Any, message: Any) -> None:
    """A bad option is named, and nothing is started or written."""
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "roadstead", "--kubeconfig", str(path), *options]

    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=END_S)

    assert ended.returncode == 2
    assert message in ended.stderr
    assert not path.exists()


@pytest.mark.parametrize("options", [[], ["--server-only"]], ids=["all", "server"])
def test_each_start_draws_a_token_that_the_owner_of_the_file_alone_may_read(
    tmp_path: Path, launch_roadstead: Launch, options: Any
) -> None:
    """No other user of the machine is an administrator of the cluster, and an old kubeconfig is rejected."""
    path = tmp_path / "kubeconfig"
    tokens = []
    for _ in range(2):
        process = launch_roadstead([*options, "--kubeconfig", str(path)], tmp_path / "log")
        deadline = time.monotonic() + START_S
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        config = yaml.safe_load(path.read_text())
        mode = path.stat().st_mode
        server = next(one["cluster"]["server"] for one in config["clusters"] if "http:" in str(one))
        tokens.append(config["users"][0]["user"]["token"])
        statuses = [answered(f"{server}/api/v1/nodes", token) for token in tokens]
        process.terminate()
        process.wait(END_S)
        path.unlink()

        assert mode & 0o077 == 0
        assert statuses == [401] * (len(tokens) - 1) + [200]

    assert len(set(tokens)) == 2
    assert all(len(token) >= 32 for token in tokens)


def answered(url: Any, token: Any) -> Any:
    """The status of a GET."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=END_S) as response:
            return response.status
    except urllib.error.HTTPError as refused:
        return refused.code
