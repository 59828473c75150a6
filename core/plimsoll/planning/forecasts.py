"""Decides which profile places a pod: that of the policy that serves its scheduler, or an assumed one."""

from collections.abc import Mapping

from msgspec import Struct, field

from plimsoll.engine.profile import Profile


class Forecasts(Struct, frozen=True):
    """The profiles that are assumed for schedulers that no policy serves.

    Attributes:
        described: By scheduler name, what a suspended policy says of a scheduler; the policy serves nothing.
        default: For all other names; None if no profile is assumed.
    """

    described: Mapping[str, Profile] = field(default_factory=dict)
    default: Profile | None = None

    def profile_of(self, scheduler: str, served: Mapping[str, Profile]) -> Profile | None:
        """The profile that places the pods of a scheduler name; None if none can be assumed.

        Args:
            scheduler: The name.
            served: The profiles of the policies that serve scheduler names, by these names.
        """
        return served.get(scheduler) or self.described.get(scheduler) or self.default

    def basis(self, scheduler: str) -> str:
        """Which profile is assumed for a scheduler that no policy serves, as a clause."""
        described = self.described.get(scheduler)
        if described is None:
            return "kube-scheduler's default profile, which is assumed"
        return f"the profile that suspended policy {described.policy} describes"
