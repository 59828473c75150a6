"""An extender: pods go to cool racks. ``python cool_racks.py temperatures.json [port]``, nothing else needed.

The file says how warm each rack is, in °C, and is read for every question; a node's rack is its label.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LABEL = "example.com/rack"
TOO_HOT = 40


class CoolRacks(BaseHTTPRequestHandler):
    """Answers ``POST /filter`` and ``POST /prioritize``."""

    def do_POST(self) -> None:
        """Read the question, find the temperature of each node's rack, answer."""
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        racks = json.loads(Path(sys.argv[1]).read_text())
        nodes = {node["metadata"]["name"]: node for node in question["Nodes"]["items"]}
        rack = {name: node["metadata"].get("labels", {}).get(LABEL, "") for name, node in nodes.items()}
        warmth = {name: racks.get(rack[name], 0) for name in nodes}
        if self.path == "/filter":
            hot = {name for name in nodes if warmth[name] > TOO_HOT}
            answer = {
                "Nodes": {"items": [node for name, node in nodes.items() if name not in hot]},
                "FailedNodes": {name: f"rack {rack[name]} is too hot" for name in hot},
            }
        else:
            # 10 at 0 °C, 0 at 40 °C and above
            answer = [{"Host": name, "Score": max(0, 10 - warmth[name] // 4)} for name in nodes]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 8888), CoolRacks)
    sys.stderr.write(f"http://127.0.0.1:{server.server_port}\n")
    server.serve_forever()
