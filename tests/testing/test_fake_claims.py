"""The API server of claims that plugin authors test against answers as a real one."""

import msgspec

from devices.builders import a_claim
from plimsoll.model.kinds.resource_claim import ResourceClaimStatus
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.fakes import FakeClaims


async def test_a_write_of_a_claim_that_was_made_again_finds_none() -> None:
    """It has another uid, though the name and the version may be the same."""
    claims = FakeClaims(a_claim())
    seen = claims.claims["default/mine"]
    earlier = msgspec.structs.replace(seen, metadata=msgspec.structs.replace(seen.metadata, uid="earlier"))

    assert (await claims.write_status(earlier, ResourceClaimStatus())).result.verdict is WriteOutcome.GONE
    assert (await claims.write_status(seen, ResourceClaimStatus())).result.verdict is WriteOutcome.DONE
    assert (await claims.write_status(seen, ResourceClaimStatus())).result.verdict is WriteOutcome.CONFLICT
