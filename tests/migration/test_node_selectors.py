"""Converted node selectors select the same nodes as their text."""

from hypothesis import given
from hypothesis import strategies as st

from migration.checks import CHECKS, PLUGINS
from plimsoll.migration.conversion import convert_documents
from plimsoll.migration.documents import read_documents

#: A term, and which values of its key it selects; None is a node without the label.
TERMS = {
    "{}=a": ("a",),
    "{} in (a,b)": ("a", "b"),
    "{}!=a": ("b", None),
    "{} notin (a,b)": (None,),
    "{}": ("a", "b"),
    "!{}": (None,),
}


@given(terms=st.dictionaries(st.sampled_from("xyz"), st.sampled_from(sorted(TERMS)), min_size=1))
def test_a_node_selector_selects_the_same_nodes(terms: dict[str, str]) -> None:
    """Each term on its own key stays, also where only some of them are equalities."""
    text = ",".join(term.format(key) for key, term in terms.items())
    content = f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: "{text}"
profiles:
  - name: p
    pluginConfig: [{{name: RemoveDuplicates}}]
    plugins: {{balance: {{enabled: [RemoveDuplicates]}}}}
"""
    documents = read_documents("policy.yaml", content.encode())
    (policy,) = convert_documents(documents, CHECKS, PLUGINS, keep_behaviour=False).policies

    selector = policy["spec"]["scope"]["nodeSelector"]
    found = {key: {value} for key, value in selector.get("matchLabels", {}).items()}
    for each in selector.get("matchExpressions", ()):
        values = set(each.get("values", ("a", "b")))
        is_chosen = each["operator"] in ("In", "Exists")
        found[each["key"]] = values if is_chosen else {"a", "b", None} - values
    assert found == {key: set(TERMS[term]) for key, term in terms.items()}
