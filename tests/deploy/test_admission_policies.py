"""The admission policies of deploy/ as objects: their fields exist, and a real API server finds no fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy import (
    test_admission,
    test_only_one_more,
    test_only_the_mark,
    test_only_the_taint,
    test_own_records,
)
from deploy.manifests import Obj
from e2e.polls import eventually
from e2e.speaker import speaking
from roadstead.schemas.fields import struct

PAGES = (test_admission, test_only_one_more, test_only_the_mark, test_only_the_taint, test_own_records)


@pytest.mark.parametrize(
    ("obj", "model"),
    [
        pytest.param(obj, f"V1{obj['kind']}", id=f"{obj['kind']}-{obj['metadata']['name']}")
        for page in PAGES
        for obj in (page.POLICY, page.BINDING)
    ],
)
def test_its_fields_exist(obj: Obj, model: str) -> None:
    """As Kubernetes' own description of the kinds has them."""
    strays: list[str] = []

    struct(model).taken(obj, strays)

    assert strays == []


@pytest.mark.e2e
@pytest.mark.skipif(
    "PLIMSOLL_E2E_KUBECONFIG" not in os.environ,
    reason="admission policies were not type-checked by a real API server, for PLIMSOLL_E2E_KUBECONFIG names "
    "none; their fields were compared with the kinds' own definitions",
)
@pytest.mark.parametrize("policy", [page.POLICY for page in PAGES], ids=lambda one: one["metadata"]["name"])
async def test_a_real_api_server_takes_it_and_finds_no_fault(policy: Obj) -> None:
    """Types of all kinds that are matched are checked; what it finds is in the status."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    name = f"{path}/{policy['metadata']['name']}"
    async with speaking(Path(os.environ["PLIMSOLL_E2E_KUBECONFIG"])) as speaker:
        (await speaker.request("POST", path, policy, fieldValidation="Strict")).accepted()
        try:

            async def checked() -> Obj:
                found: Obj = (await speaker.request("GET", name)).accepted().get("status", {})
                return found

            status = await eventually(checked, lambda found: "typeChecking" in found)
            assert not status["typeChecking"].get("expressionWarnings")
        finally:
            await speaker.request("DELETE", name)
