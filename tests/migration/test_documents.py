"""Files as they come: lines of values, ConfigMaps, Lists, and everything that is no configuration."""

import pytest

from migration.checks import CHECKS, PLUGINS
from plimsoll.migration.conversion import _unique, convert_documents
from plimsoll.migration.documents import DEEPEST, LONGEST_FILE, MOST_VALUES, MigrationError, read_documents

V2 = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
SCHEDULER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b"# a comment\n---\n---\n", "the file is empty", id="comments-only"),
        pytest.param(b"\xff\xfe\x00k", "this is no text in UTF-8", id="binary"),
        pytest.param(b"\x1f\x8b\x08", "this is no text in UTF-8", id="gzip"),
        pytest.param(b"a: 1\0", "this is no valid YAML or JSON", id="control-character"),
        pytest.param(b"x" * (LONGEST_FILE + 1), "the file has more than 4 MiB", id="huge"),
        pytest.param(b"just words", "the document is not an object", id="words"),
        pytest.param(b"- a\n- b\n", "the document is not an object", id="list"),
        pytest.param(
            V2.encode() + b"profiles:\n- name: [a, b\n", "this is no valid YAML or JSON", id="truncated"
        ),
        pytest.param(
            b'{"apiVersion": "descheduler/v1alpha2", "kind": "Des', "no valid YAML", id="truncated-json"
        ),
        pytest.param(BOMB.encode(), f"more than {MOST_VALUES} values, aliases counted", id="bomb"),
        pytest.param(b"a: &a\n  b: *a\n", "an alias leads back to what it is part of", id="circle"),
        pytest.param(b"[" * 100_000, f"nested more than {DEEPEST} deep", id="deep"),
        pytest.param(b"a: " * 3 + b"b", "this is no valid YAML or JSON, at line 1", id="colons"),
        pytest.param(b"a: !!python/object/apply:os.system [ls]", "the tag", id="python-tag"),
        pytest.param(b"a: !secret x", "the tag !secret is not allowed", id="own-tag"),
        pytest.param(b"kind: A\nkind: B\n", 'line 2: the key "kind" is given twice', id="key-twice"),
        pytest.param(b"? [a]\n: b\n", "a key is an object or a list", id="odd-key"),
        pytest.param(b"kind: Pod\napiVersion: v1\n", "nothing to convert: found Pod", id="unknown-kind"),
        pytest.param(b"a: b\n", "nothing to convert: found no kind", id="no-kind"),
        pytest.param(
            b"kind: DeschedulerPolicy\napiVersion: descheduler/v1beta1\n",
            "apiVersion of DeschedulerPolicy is descheduler/v1beta1; convert reads descheduler/v1alpha2",
            id="wrong-version",
        ),
        pytest.param(
            b"kind: KubeSchedulerConfiguration\n", "KubeSchedulerConfiguration is missing", id="no-version"
        ),
        pytest.param(V2.encode(), "there is no profile with an enabled strategy", id="no-profiles"),
        pytest.param(
            V2.encode() + b"profiles: 7\n", "profiles: 7 has the wrong type", id="profiles-a-number"
        ),
        pytest.param(
            V2.encode() + b"profiles: [{plugins: {balance: {enabled: [RemoveDuplicates]}}}]",
            'plugin "RemoveDuplicates" has no pluginConfig',
            id="no-plugin-config",
        ),
        pytest.param(
            V2.encode() + b"profiles: [{pluginConfig: [{name: PodLifeTime, args: {maxPodLifeSeconds: 3}}]}]",
            "did you mean maxPodLifeTimeSeconds",
            id="misspelt-argument",
        ),
        pytest.param(
            V2.encode() + b"nodeSelector: 'cpus>4'\n",
            "a policy cannot compare numbers",
            id="selector-of-numbers",
        ),
        pytest.param(
            V2.encode() + b"metricsProviders: [{source: Prometheus, prometheus: {url: 'http://u:p@x'}}]",
            "a policy takes an address like",
            id="credentials-in-a-url",
        ),
        pytest.param(
            V2.encode() + b"profiles: [{name: p, plugins: {deschedule: {enabled: [RemoveDuplicates]}}}]\n",
            'profiles[0].plugins.deschedule.enabled[0]: there is no plugin "RemoveDuplicates" for it',
            id="enabled-at-the-other-point",
        ),
        pytest.param(
            SCHEDULER.encode() + b"profiles: {}\n", "profiles: it is not a list", id="profiles-an-object"
        ),
        pytest.param(
            SCHEDULER.encode() + b"profiles: [{}, {}]\n",
            "profiles[0].schedulerName: a name is",
            id="two-unnamed",
        ),
        pytest.param(
            SCHEDULER.encode() + b"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {x: 1}}]}]",
            "would not be accepted: spec.scheduling.pluginConfig[0].args.x",
            id="unknown-argument",
        ),
        pytest.param(
            SCHEDULER.encode() + b"extenders: [{urlPrefix: 'http://x', httpTimeout: soon}]",
            "extenders[0].httpTimeout",
            id="timeout",
        ),
    ],
)
def test_a_file_that_cannot_be_converted_is_refused_in_one_sentence(content: bytes, sentence: str) -> None:
    """The sentence names the file and what is wrong; nothing is executed and nothing runs away."""
    with pytest.raises(MigrationError) as caught:
        convert_documents(read_documents("policy.yaml", content), CHECKS, PLUGINS, keep_behaviour=False)

    text = str(caught.value)
    assert text.startswith("policy.yaml")
    assert sentence in text
    assert "\n" not in text


def test_the_lines_of_a_file_are_those_an_editor_shows() -> None:
    """Keys have their own line; what is inside of a list has the line of its item."""
    (document,) = read_documents("f", b"kind: X\n\na:\n  b:\n  - c: 1\n  - d: 2\n")

    assert document.line(("a",)) == 3
    assert document.line(("a", "b", 1, "d")) == 6
    assert document.line(("a", "b", 1, "d", "no such")) == 6


def test_a_config_map_gives_what_it_carries() -> None:
    """Keys that are no configuration are left alone; lines are those of the outer file."""
    text = "kind: ConfigMap\nmetadata: {name: m}\ndata:\n  odd: '{{'\n  p.yaml: |\n    kind: X\n    a: 1\n"

    (document,) = read_documents("f", text.encode())

    assert document.origin == "f, ConfigMap m, p.yaml"
    assert (document.kind, document.line(("a",))) == ("X", 7)


def test_a_list_gives_its_items() -> None:
    """As ``kubectl get configmaps -o yaml`` prints them."""
    text = 'kind: List\nitems:\n- kind: X\n- kind: ConfigMap\n  data:\n    a.json: \'{"kind": "Y"}\'\n'

    documents = read_documents("f", text.encode())

    assert [(each.kind, each.line(("kind",))) for each in documents] == [("X", 3), ("Y", 6)]


def test_a_text_in_a_list_has_the_lines_of_the_file() -> None:
    """A text in a block has a line for each of its own."""
    item = "- kind: ConfigMap\n  data:\n    a.yaml: "
    text = f"kind: List\nitems:\n{item}|\n      kind: X\n      a: 1\n{item}'{{kind: Y, a: 1}}'\n"

    documents = read_documents("f", text.encode())

    assert [(each.kind, each.line(("a",))) for each in documents] == [("X", 7), ("Y", 10)]


def test_the_data_of_other_kinds_holds_no_documents() -> None:
    """What a Secret carries is not read."""
    documents = read_documents("f", b"kind: Secret\ndata:\n  a.yaml: 'kind: X'\n")

    assert [each.kind for each in documents] == ["Secret"]


def test_without_known_lines_none_is_given() -> None:
    """JSON is read without them."""
    (document,) = read_documents("f", b'{"kind": "ConfigMap", "data": {"a.yaml": "kind: X\\n"}}')

    assert (document.kind, document.line(("kind",))) == ("X", 0)


def test_each_plugin_of_a_profile_is_carried_to_a_place_of_its_own() -> None:
    """One that is dropped takes no place."""
    names = "".join(
        f"  - name: {each}\n" for each in ("NodeResourcesFit", "Strange", "NodeAffinity", "NodePorts")
    )
    text = f"{SCHEDULER}profiles:\n- pluginConfig:\n{names}"

    found = convert_documents(read_documents("f", text.encode()), CHECKS, PLUGINS, keep_behaviour=False)

    targets = [each.target for each in found.report if each.target and "pluginConfig[" in each.target]
    assert [each.partition(".pluginConfig")[2][:8] for each in targets] == [
        "[0].name",
        "[1].name",
        "[2].name",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1:30", "1:30"), ("2024-01-01", "2024-01-01"), ("yes", True), ("~", None), ("0x10", 16), ('"5"', "5")],
)
def test_scalars_are_read_as_upstream_reads_them(text: str, value: object) -> None:
    """Times and numbers of base 60 are text; the booleans of YAML 1.1 are booleans."""
    (document,) = read_documents("f", f"kind: X\na: {text}\n".encode())

    assert document.body["a"] == value


def test_anchors_and_merges_are_followed() -> None:
    """Templates use them."""
    (document,) = read_documents("f", b"base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nagain: *b\n")

    assert document.body["more"] == {"x": 1, "y": 3}
    assert document.body["again"] == {"x": 1, "y": 2}


def test_names_are_unique_and_short_enough() -> None:
    """Two hundred characters at most, with a number behind those that come again."""
    names: set[str] = set()
    found = [_unique(each, names) for each in ("a" * 300, "a" * 200, "a" * 199 + "!", "A_b", "a-b", "--")]

    assert found == ["a" * 200, "a" * 200 + "-2", "a" * 199, "a-b", "a-b-2", "converted"]
    assert names == set(found)
