"""The command ``plimsoll pools``: writes the policies by which operators share a cluster, pool by pool."""

from typing import Annotated, Any

from plimsoll.cli.output import print_lines
from plimsoll.commands.errors import UserError
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb


def pools(
    names: Annotated[
        list[str],
        Argument(
            metavar="POOL[=NAMESPACE,...]...",
            help="Values of the label; pods of the namespaces behind one are adopted for it.",
        ),
    ],
    *,
    label: Annotated[str, Option("--label", help="Label of nodes that has the pool as its value.")],
    rest: Annotated[
        str,
        Option(
            "--rest",
            metavar="NAME",
            help="Also write a policy of this name for all other nodes, of the operator without a name.",
        ),
    ] = "",
) -> None:
    """Write the policies by which operators share a cluster.

    Each pool gets a policy and a scheduler name, served by an operator that runs with --operator-name and
    the pool's name. No node can belong to two of them; plimsoll validate checks that of any policies.
    Nothing is written to a cluster.
    """
    import yaml  # noqa: PLC0415 - each command loads what it needs

    given = [each.partition("=") for each in names]
    found = [pool for pool, _, _ in given]
    twice = next((pool for pool in found if found.count(pool) > 1), "")
    if twice:
        raise UserError(f'pool "{twice}" is named twice; name each once, with all of its namespaces')
    written = [
        _policy(pool, (label, "In", [pool]), operator=pool, namespaces=[*filter(None, spaces.split(","))])
        for pool, _, spaces in given
    ]
    if rest:
        written.append(_policy(rest, (label, "NotIn", found)))
    print_lines([yaml.safe_dump_all(written, sort_keys=False).rstrip()])


def _policy(
    name: str, nodes: tuple[str, str, list[str]], *, operator: str = "", namespaces: list[str] | None = None
) -> dict[str, Any]:
    """A policy that places pods on nodes whose label relates so to the values."""
    from plimsoll.api.v1alpha1.annotations import OPERATOR  # noqa: PLC0415 - as above

    key, word, values = nodes
    terms = [{"matchExpressions": [{"key": key, "operator": word, "values": values}]}]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name, **({"labels": {OPERATOR: operator}} if operator else {})},
        "spec": {
            "scheduling": {
                "schedulerName": f"plimsoll-{name}",
                "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}],
                **({"adopt": {"namespaces": {"include": namespaces}}} if namespaces else {}),
            }
        },
    }


VERB = Verb("pools", pools)
