"""Logs and commands of pods, with kubectl."""

import json
import subprocess
from typing import Any

import pytest

from roadstead.clients import ApiError, RunningCluster


def run_pod(cluster: RunningCluster, name: str = "talks", containers: int = 1, **annotations: str) -> None:
    given = {
        f"roadstead.test/{key.replace('__', '.').replace('_', '-')}": value
        for key, value in annotations.items()
    }
    listed = [{"name": f"c{number}", "image": "app:1"} for number in range(containers)]
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": given},
            "spec": {"containers": listed, "terminationGracePeriodSeconds": 0},
        }
    )
    cluster.wait_for(f"pods/{name}", until=lambda pod: pod["status"]["phase"] in ("Running", "Pending"))
    cluster.wait_for(f"pods/{name}", until=lambda pod: pod["spec"].get("nodeName"))


def test_a_pod_logs_its_annotation(roadstead: RunningCluster) -> None:
    """Each container its own text, or the one of all."""
    run_pod(roadstead, containers=2, logs="all\nof it", logs__c1="only c1")
    roadstead.wait_for("pods/talks", condition="Ready")

    assert roadstead.kubectl("logs", "talks", "-c", "c0") == "all\nof it\n"
    assert roadstead.kubectl("logs", "talks", "-c", "c0", "--tail=1") == "of it\n"
    assert roadstead.kubectl("logs", "talks", "-c", "c1") == "only c1\n"


def test_a_followed_log_goes_on_until_the_pod_ends(roadstead: RunningCluster) -> None:
    run_pod(roadstead, logs="first")
    roadstead.wait_for("pods/talks", condition="Ready")
    command = ["kubectl", "logs", "-f", "talks"]
    with subprocess.Popen(command, env=roadstead.environment, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "first\n"

        roadstead.kubectl("annotate", "--overwrite", "pod", "talks", "roadstead.test/logs=first\nsecond")
        assert following.stdout.readline() == "second\n"
        roadstead.delete("pods/talks")

        assert following.wait(30) == 0


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "a container name must be specified for pod talks, choose one of: [c0 c1]"),
        ("?container=none", "container none is not valid for pod talks"),
    ],
)
def test_a_log_of_no_container_is_refused(roadstead: RunningCluster, query: str, message: str) -> None:
    run_pod(roadstead, containers=2)

    with pytest.raises(ApiError) as refused:
        roadstead.request("GET", f"/api/v1/namespaces/default/pods/talks/log{query}")

    assert str(refused.value) == f"400 BadRequest: {message}"


def test_a_container_that_does_not_start_has_no_log(roadstead: RunningCluster) -> None:
    run_pod(roadstead, start_error="ImagePullBackOff")
    roadstead.wait_for("pods/talks", until=lambda pod: pod["status"].get("containerStatuses"))

    with pytest.raises(subprocess.CalledProcessError, match="is waiting to start: ImagePullBackOff"):
        roadstead.kubectl("logs", "talks")


def test_a_command_writes_what_the_annotation_says(roadstead: RunningCluster) -> None:
    """By its line, else what is given for any; standard error and the exit code as well."""
    commands: Any = {
        "cat /etc/hostname": "talks\n",
        "fail": {"stdout": "half", "stderr": "no more\n", "code": 3},
    }
    run_pod(roadstead, exec=json.dumps(commands))
    roadstead.wait_for("pods/talks", condition="Ready")

    assert roadstead.kubectl("exec", "talks", "--", "cat", "/etc/hostname") == "talks\n"
    with pytest.raises(subprocess.CalledProcessError, match="no more") as failed:
        roadstead.kubectl("exec", "talks", "--", "fail")
    assert (failed.value.returncode, failed.value.stdout) == (3, "half")
    with pytest.raises(
        subprocess.CalledProcessError, match=r"other: not found; .* roadstead.test/exec"
    ) as none:
        roadstead.kubectl("exec", "talks", "--", "other")
    assert none.value.returncode == 127


def test_input_of_a_command_is_read(roadstead: RunningCluster) -> None:
    run_pod(roadstead, exec="done\n")
    roadstead.wait_for("pods/talks", condition="Ready")

    assert roadstead.kubectl("exec", "-i", "talks", "--", "sh", stdin="some\ninput\n") == "done\n"
