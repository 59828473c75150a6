"""kubectl's flags: before or after the verb, with KUBECONFIG and contexts as kubectl has them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
import yaml
from click.testing import CliRunner

from cli.refusing_server import kubeconfig_of
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import NAMESPACED, OUTPUT, Flag, Options
from plimsoll.commands.parameters import Argument, Option, parameter
from plimsoll.commands.verbs import Verb, VerbGroup, application
from plimsoll.kube.session.credentials import check, loader, present_namespace


def options_of(*words: str, **environment: str) -> Options | str:
    """What a verb below a group gets, or what is said instead."""
    seen: list[Options] = []

    def pod(options: Options) -> None:
        seen.append(options)

    verb = Verb("pod", pod, (*NAMESPACED, Flag.SELECTOR, *OUTPUT))
    plain = Verb("plain", lambda: seen.append(Options()))
    entries: dict[str, Verb | VerbGroup] = {
        "explain": VerbGroup("explain", "Explains.", (verb,)),
        "plain": plain,
    }
    app = application("A test.", dict.fromkeys(entries, ""), entries.__getitem__, "1")
    result = CliRunner().invoke(app, list(words), env={"KUBECONFIG": None, **environment})
    return seen[0] if result.exit_code == 0 else result.stderr


FLAGS = (("--kubeconfig", "f"), ("--context=c",), ("-n", "shop"), ("-A",), ("-l", "a=b"), ("-ojson",))


@pytest.mark.parametrize("before", range(len(FLAGS) + 1))
def test_flags_stand_before_or_after_the_verb(before: int) -> None:
    """Also between a group and its verb."""
    head = [word for flag in FLAGS[:before] for word in flag]
    tail = [word for flag in FLAGS[before:] for word in flag]

    expected = Options(Path("f"), "c", "shop", all_namespaces=True, selector="a=b", output="json")
    assert options_of(*head, "explain", "pod", *tail) == expected
    assert options_of("explain", *head, "pod", *tail) == expected


def test_a_flag_after_the_verb_wins() -> None:
    """The one that is nearest to it."""
    seen = options_of("-n", "far", "explain", "-n", "near", "pod")
    assert seen == Options(namespace="near", output="table")
    assert options_of("-n", "far", "explain", "pod", "-n", "near") == seen


def test_a_verb_refuses_a_flag_that_it_does_not_take() -> None:
    """It would have no effect."""
    assert options_of("-n", "shop", "plain") == "error: plain has no flag --namespace; see --help\n"
    assert options_of("plain") == Options()
    assert "No such command 'plain/x'" in str(options_of("plain/x"))


def test_a_format_is_one_of_the_verbs() -> None:
    """In kubectl's words."""
    assert options_of("explain", "pod", "-o", "xml") == (
        "error: unable to match the output format 'xml'; allowed: table, wide, json, yaml,"
        " jsonpath=TEMPLATE\n"
    )


def test_the_flag_of_a_kubeconfig_wins_over_the_environment() -> None:
    seen = options_of("explain", "pod", KUBECONFIG="a:b")
    assert seen == Options(Path("a:b"), output="table")
    seen = options_of("explain", "pod", "--kubeconfig", "c", KUBECONFIG="a:b")
    assert seen == Options(Path("c"), output="table")


@pytest.mark.parametrize(
    ("given", "where"), [({}, "here"), ({"namespace": "x"}, "x"), ({"all_namespaces": True}, "")]
)
def test_the_namespace_is_that_of_the_context(given: dict[str, object], where: str, tmp_path: Path) -> None:
    """Unless another one is named, or all are asked for."""
    file = kubeconfig_of(tmp_path / "config", "http://127.0.0.1:1", namespace="here")
    assert Options(kubeconfig=file, **given).where() == where  # type: ignore[arg-type] # one of the fields


def test_a_selector_is_read_as_kubectl_reads_it() -> None:
    assert Options(selector="app in (a,b)").labels().matches({"app": "a"})
    assert Options().labels().matches({})
    with pytest.raises(UserError, match="--selector: "):
        Options(selector="app in").labels()


async def test_several_kubeconfigs_are_merged_as_kubectl_does(tmp_path: Path) -> None:
    """The first that sets a name or the current context wins; a file that is missing is passed over."""
    one = kubeconfig_of(tmp_path / "one", "http://one", namespace="first")
    two = kubeconfig_of(tmp_path / "two", "http://two", namespace="second")
    content = yaml.safe_load(two.read_text().replace("name: here", "name: there"))
    two.write_text(yaml.safe_dump({**content, "current-context": "there"}))
    several = Path(f"{tmp_path / 'missing'}:{one}:{two}")

    assert (check(several), check(several, "there")) == ("here", "there")
    assert present_namespace(several) == "first"
    assert present_namespace(several, "there") == "second"
    assert (await loader(several)()).configuration.host == "http://one"


def test_jsonpath_has_a_template_and_other_formats_have_none() -> None:
    found = options_of("explain", "pod", "-o", "jsonpath={.a}")
    assert isinstance(found, Options)
    assert found.output == "jsonpath={.a}"
    for wrong in ("jsonpath", "jsonpath=", "json={.a}", "name"):
        assert "unable to match" in str(options_of("explain", "pod", "-o", wrong))


def test_colours_are_one_of_three() -> None:
    assert options_of("explain", "pod", "--color", "yes") == (
        "error: --color is 'yes'; allowed: auto, always, never\n"
    )


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [(int, 3, True), (str, "a", True), (str, "", False), (str, None, False)],
)
def test_help_shows_the_defaults_that_say_something(annotation: Any, default: Any, shown: bool) -> None:
    option = parameter("limit", Annotated[annotation, Option(help="How many.")], default)

    assert isinstance(option, click.Option)
    assert option.show_default is shown


@pytest.mark.parametrize(
    ("default", "ending"), [(inspect.Parameter.empty, "  [required]"), ("", ""), (None, "")]
)
def test_help_says_which_arguments_are_required(default: Any, ending: str) -> None:
    argument = parameter("pod", Annotated[str | None, Argument(help="A pod.")], default)

    record = argument.get_help_record(click.Context(click.Command("x")))
    assert record is not None
    assert record[1] == f"A pod.{ending}"


@pytest.mark.parametrize(
    ("files", "folders", "shown"), [(True, True, "path"), (True, False, "file"), (False, True, "dir")]
)
def test_a_path_says_what_may_be_named(files: bool, folders: bool, shown: str) -> None:
    declared = Option(help="Where.", file_okay=files, dir_okay=folders)

    option = parameter("place", Annotated[Path, declared], None)

    assert isinstance(option.type, click.Path)
    assert option.make_metavar(click.Context(click.Command("x"))) == f"<{shown}>"


@pytest.mark.parametrize("flag", ["", "shop", "other"])
@pytest.mark.parametrize("written", ["", "shop"])
def test_an_object_is_of_the_namespace_that_is_written_or_given(flag: str, written: str) -> None:
    """Both may say it if they say the same."""
    options = Options(namespace=flag)
    if flag and written and flag != written:
        with pytest.raises(UserError, match="--namespace other contradicts"):
            options.namespace_of(f"{written}/web", written)
    else:
        assert options.namespace_of("web", written) == (written or flag)
