"""Writes the roles that a Kubernetes cluster has from the beginning, as roadstead creates them.

Usage: ``kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o json |
python tools/bootstrap_roles.py`` with a kube-apiserver 1.36 that has no other roles. Roles of controllers are
left out, because roadstead's controllers need none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

WRITTEN = Path(__file__).parent.parent / "devcluster/src/roadstead/authorization/bootstrap_roles.json"
_LEFT_OUT = ("system:controller:", "system:openshift:")


def main() -> None:
    """Write the file."""
    found = []
    for one in json.load(sys.stdin)["items"]:
        meta = one["metadata"]
        if meta["name"].startswith(_LEFT_OUT):
            continue
        kept: dict[str, Any] = {
            key: meta[key] for key in ("name", "namespace", "labels", "annotations") if key in meta
        }
        fields = {key: one[key] for key in ("aggregationRule", "rules", "subjects", "roleRef") if key in one}
        if "aggregationRule" in fields:
            fields.pop("rules", None)
        found.append({"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": kept, **fields})
    lines = (json.dumps(one, separators=(",", ":"), sort_keys=True) for one in found)
    WRITTEN.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
