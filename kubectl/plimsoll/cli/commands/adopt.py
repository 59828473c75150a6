"""The command ``plimsoll adopt``: writes, applies and removes what adopts pods."""

from typing import Annotated

from plimsoll.cli.output import print_lines
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import SERVER, Flag, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

Policies = Annotated[
    list[str] | None, Argument(metavar="POLICY", help="Policies; left out, all that adopt pods.")
]
Apply = Annotated[bool, Option("--apply", help="Apply it with your rights, instead of printing it.")]
Remove = Annotated[bool, Option("--remove", help="Delete what adopts pods for the named policies.")]
Lease = Annotated[str, Option("--lease", help="Name of the operator's lease.")]


def adopt(
    options: Options,
    policies: Policies = None,
    *,
    apply: Apply = False,
    remove: Remove = False,
    lease: Lease = "plimsoll",
) -> None:
    """Write what adopts pods as policies say, or remove it.

    It prints the MutatingAdmissionPolicy and the binding of each policy with spec.scheduling.adopt; where the
    server has no such kinds, a policy for Kyverno. The operator's namespace is that of its lease, unless
    --namespace names it. The operator itself has no right to write admission policies.
    """
    from plimsoll.cli.callers import adoption  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.callers.pauses import OperatorLease  # noqa: PLC0415 - likewise
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise

    if apply and remove:
        raise UserError("--apply and --remove exclude each other")
    if remove and not policies:
        raise UserError("name the policies whose admission objects --remove deletes")
    names = tuple(policies or ())
    if remove:
        print_lines(with_session(options, lambda session: adoption.remove(session, names)))
        return
    operator = OperatorLease(options.namespace, lease)
    carry_out = adoption.apply if apply else adoption.printed
    print_lines(with_session(options, lambda session: carry_out(session, operator, names)))


VERB = Verb("adopt", adopt, (*SERVER, Flag.NAMESPACE), completes="policies")
