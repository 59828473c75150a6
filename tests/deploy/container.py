"""The image's layout as containers: unpacked by umoci, run by crun, as restricted as deploy/ runs it.

No network namespace: development clusters listen on loopback. No limits: a container here has no cgroup.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import IO, Any

#: What a test of the image needs; Debian has packages of these names.
PROGRAMS = ("umoci", "crun")
#: crun refuses a machine that has both versions of cgroups, so it does not see the second; the mount
#: namespace is its own and ends with it.
ENTER = (
    "umount /sys/fs/cgroup/unified 2>/dev/null; "
    "exec crun --root {folder}/state --cgroup-manager=disabled "
    "run --pid-file {folder}/pid --bundle {folder} {name}"
)


def missing_programs() -> list[str]:
    """Of a container: what is not installed, or may not be used."""
    if os.geteuid() != 0:
        return ["root's rights"]
    return [name for name in PROGRAMS if shutil.which(name) is None]


def unpack(layout: Path, bundle: Path) -> Path:
    """An image's files and configuration, as an OCI bundle."""
    (name,) = (
        each["annotations"]["org.opencontainers.image.ref.name"]
        for each in json.loads((layout / "index.json").read_text(encoding="utf-8"))["manifests"]
    )
    subprocess.run(
        ["umoci", "unpack", "--image", f"{layout}:{name}", bundle], check=True, capture_output=True
    )
    return bundle


def restricted(
    bundle: Path, files: dict[str, Path], environment: dict[str, str], *args: str
) -> dict[str, Any]:
    """The configuration of one container of it: what Kubernetes makes of deploy/base, and the host's network.

    Args:
        bundle: Of :func:`unpack`.
        files: Files and folders of this machine, by where the container reads them.
        environment: In addition to the image's own.
        args: In place of the image's CMD.
    """
    config: dict[str, Any] = json.loads((bundle / "config.json").read_text(encoding="utf-8"))
    process = config["process"]
    assert process["args"][-1] == "run", process["args"]
    process["args"] = [*process["args"][:-1], *args]
    process["env"] += [f"{name}={value}" for name, value in environment.items()]
    process.update(terminal=False, noNewPrivileges=True, capabilities={})
    config["root"] = {"path": str(bundle / "rootfs"), "readonly": True}
    config["mounts"] = [each for each in config["mounts"] if each["destination"] != "/sys/fs/cgroup"]
    config["mounts"] += [
        {"destination": inside, "source": str(outside), "type": "bind", "options": ["rbind", "ro"]}
        for inside, outside in files.items()
    ]
    linux = config["linux"]
    linux.pop("resources", None)
    linux["namespaces"] = [each for each in linux["namespaces"] if each["type"] != "network"]
    return config


class Container:
    """A container that runs, with a process's methods; signals go to its first process.

    Args:
        folder: Becomes its bundle; its name becomes the container's.
        config: Of :func:`restricted`.
        output: Where it writes.
    """

    def __init__(self, folder: Path, config: dict[str, Any], output: int | IO[bytes]) -> None:
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        self._folder = folder
        script = ENTER.format(folder=folder, name=folder.name)
        run = ["unshare", "--mount", "sh", "-c", script]
        self.process = subprocess.Popen(run, stdout=output, stderr=subprocess.STDOUT)

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        return self.process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends."""
        return self.process.wait(timeout)

    def send_signal(self, number: int) -> None:
        """Send it to the container's process: crun cannot hand on all of them."""
        if self.poll() is None:
            os.kill(int((self._folder / "pid").read_text(encoding="ascii")), number)

    def kill(self) -> None:
        """End it without a warning."""
        self.send_signal(signal.SIGKILL)
