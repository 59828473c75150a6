"""Writes the models of Kubernetes' built-in kinds for roadstead, from the generated client.

``PYTHONPATH=tools python -m roadstead_models`` writes ``devcluster/src/roadstead/schemas/models.json``: for
each model its required fields, and the type and description of each field, in the client's words. roadstead
needs nothing else of the client, which is 47 MB when installed.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from kubernetes_asyncio.client import models

FILE = Path(__file__).parents[1] / "devcluster/src/roadstead/schemas/models.json"
#: Models of versions and lists that roadstead does not serve.
_LEFT_OUT = re.compile(r"V\d+(alpha|beta)\d+|List$")


def text() -> str:
    """The file."""
    found = {}
    for each in iter_modules(models.__path__):  # the package itself may have been replaced by a lazy one
        module = import_module(f"{models.__name__}.{each.name}")
        for name, model in vars(module).items():
            if hasattr(model, "openapi_types") and not _LEFT_OUT.search(name):
                found[name] = _model(model)
    lines = (f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _model(model: Any) -> dict[str, Any]:
    fields, required = {}, []
    for attribute, kind in model.openapi_types.items():
        accessor, key = getattr(model, attribute), model.attribute_map[attribute]
        fields[key] = [kind, _description(accessor.__doc__ or "")]
        if any("must not be `None`" in str(constant) for constant in accessor.fset.__code__.co_consts):
            required.append(key)
    return {"required": required, "fields": fields}


def _description(docstring: str) -> str:
    lines = docstring.replace("# noqa: E501", "").split("\n\n")
    return " ".join(lines[1].split()) if len(lines) > 2 else ""


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
