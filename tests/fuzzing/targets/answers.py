"""Targets of answers of other servers: Prometheus, extenders."""

from __future__ import annotations

from functools import partial

from fuzzing.target import Broken, Target, kind_of, outcome
from fuzzing.targets.servers import checked
from plimsoll.api.v1alpha1.prometheus import NodeQuerySpec
from plimsoll.engine.extender import Extender
from plimsoll.http_services.prometheus import _vector
from plimsoll.load.readings import CPU, LARGEST
from plimsoll.scheduling.extenders import wire
from plimsoll.scheduling.extenders.asks import NodeDocuments, filter_ask, prioritize_ask
from plimsoll.testing.builders import a_node
from plimsoll.usage.queried_usage import node_usage, pod_usage

NODES = (a_node("n1"), a_node("n2"))
KNOWN_NODES = {node.name: node for node in NODES}
QUERIES = {
    "cpu": NodeQuerySpec(query="q", unit="Cores"),
    "example.com/io": NodeQuerySpec(query="q", unit="Share"),
}


def prometheus(data: bytes) -> object:
    """The answer to a query."""
    result, samples = _vector("Prometheus at http://p", 200, data)
    answers, now = {"cpu": samples, "example.com/io": samples}, 1435781451.781
    for name, usage in node_usage(answers, QUERIES, KNOWN_NODES, now).items():
        if name not in KNOWN_NODES or not all(0 <= amount <= 100 * 10**9 for amount in usage.values()):
            raise Broken(f"usage of {name!r}: {usage}"[:300])
    for pod, usage in pod_usage({"cpu": samples}, now).items():
        if not 0 <= usage["cpu"] <= len(samples) * LARGEST[CPU]:
            raise Broken(f"usage of {pod!r}: {usage}"[:300])
    return checked(result), len(samples)


def extenders(data: bytes) -> object:
    """All answers of extenders."""
    sent = frozenset(("n1", "n2"))
    kinds: list[object] = []
    for names in (True, False):
        found, kind = outcome(partial(wire.filter_answer, data, sent, names=names), wire.AnswerError)
        kinds.append(kind)
        if found is not None:
            if not found.passed <= sent:
                raise Broken("nodes that were not asked about")
            kinds += [
                kind_of(each, needed=False) for each in (*found.failed.values(), *found.unresolvable.values())
            ][:4]
    scores, kind = outcome(lambda: wire.scores_answer(data), wire.AnswerError)
    if scores and not all(abs(each) < 2**62 for each in scores.values()):
        raise Broken(f"scores beyond all bounds: {scores}"[:300])
    kinds.append(kind)
    victims, kind = outcome(lambda: wire.victims_answer(data), wire.AnswerError)
    kinds.append(kind)
    kinds.append(outcome(lambda: wire.binding_answer(data), wire.AnswerError)[1])
    kinds += [outcome(partial(ask.read, data), wire.AnswerError)[1] for ask in ASKS]
    return tuple(kinds), victims is not None


EXTENDER = Extender("http://e", "f", "p", "v", "b", 5, True, frozenset(), False)  # noqa: FBT003 - as written
ASKS = (filter_ask(EXTENDER, NODES, NodeDocuments()), prioritize_ask(EXTENDER, NODES, NodeDocuments()))


TARGETS = (
    Target(
        "prometheus",
        "http_services.prometheus, rebalancing.queried_usage",
        "answers of a Prometheus that a policy names, and the usage in them",
        prometheus,
        lambda: [
            (
                b'{"status":"success","data":{"resultType":"vector","result":'
                b'[{"metric":{"instance":"n1","namespace":"a","pod":"p"},"value":[1435781451.781,"0.75"]}]}}'
            ),
            b'{"status":"error","errorType":"bad_data","error":"x"}',
        ],
        (b'"NaN"', b'"+Inf"', b'"-1"', b'"1e300"', b'"matrix"'),
    ),
    Target(
        "extenders",
        "scheduling.extenders.wire, scheduling.extenders.asks",
        "answers of HTTP extenders",
        extenders,
        lambda: [
            b'{"nodenames":["n1"],"failedNodes":{"n2":"no"},"failedAndUnresolvableNodes":{"n2":"never"},"error":""}',
            b'{"Nodes":{"items":[{"metadata":{"name":"n1"}}]},"NodeNames":null,"Error":"broken"}',
            b'[{"host":"n1","score":7},{"Host":"n2","Score":10}]',
            b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}',
        ],
        (b'"Error":', b'"nodenames":', b"null"),
    ),
)
