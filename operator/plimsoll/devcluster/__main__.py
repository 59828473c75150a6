"""``python -m plimsoll.devcluster --kubeconfig FILE``: the API server alone, until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from pathlib import Path

from plimsoll.devcluster.api import Api
from plimsoll.devcluster.cluster import kubeconfig, new_token, write_privately
from plimsoll.devcluster.extending import extended_server
from plimsoll.devcluster.starting import seed


async def run(path: Path, port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    api = Api()
    seed(api)
    token = new_token()
    server = extended_server(api, token)
    url = await server.start(port)
    await asyncio.to_thread(write_privately, path, kubeconfig(url, token))
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await server.stop()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(arguments.kubeconfig, arguments.port))


if __name__ == "__main__":
    main()
