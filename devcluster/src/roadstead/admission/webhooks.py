"""Judges writes by the webhooks of ValidatingWebhookConfigurations and MutatingWebhookConfigurations.

What a webhook is asked and what its answer means is decided here; ``server.webhook_calls`` calls it.

Source: apiserver v1.36 ``pkg/admission/plugin/webhook``: ``generic``, ``mutating``, ``validating``,
``matchconditions``, ``request``, ``errors``.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from roadstead.admission.expressions import Evaluation, FailedError
from roadstead.admission.matching import (
    GROUP,
    decoded,
    in_version,
    internal,
    is_exempt,
    kind_of,
    known_of,
    namespace_of,
    request_of,
    seen,
)
from roadstead.schemas.schemas import go_type
from roadstead.store import patches
from roadstead.store.progress import Question
from roadstead.store.webhook_addresses import UnreachableError, address_of
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError, forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.store.admission import Attempt
    from roadstead.store.api import Api
    from roadstead.store.progress import Answer
    from roadstead.values.resources import Obj, Resource

MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
_VERSIONS = ("v1", "v1beta1")


class _UncalledError(Exception):
    """A webhook could not be called, or has answered what cannot be used."""


@dataclass(frozen=True, slots=True)
class MutatingWebhooks:
    """The mutating webhooks of a cluster.

    Args:
        api: where their configurations are.
    """

    api: Api

    def mutations(self, attempt: Attempt) -> Iterator[Webhook]:
        """The webhooks, if the write may ask any."""
        return _webhooks(self.api, MUTATING, attempt)


@dataclass(frozen=True, slots=True)
class ValidatingWebhooks:
    """The validating webhooks of a cluster.

    Args:
        api: where their configurations are.
    """

    api: Api

    def validated(self, attempt: Attempt) -> None:
        """Let all webhooks judge a write.

        Raises:
            StatusError: one denies it, or cannot be called.
            Unanswered: some are to be asked, all at a time.
        """
        asked: list[tuple[Webhook, Question | _UncalledError]] = []
        for webhook in _webhooks(self.api, VALIDATING, attempt):
            if (found := webhook.seen(attempt)) is not None:
                try:
                    asked.append((webhook, webhook.question(found)))
                except _UncalledError as error:
                    asked.append((webhook, error))
        if attempt.progress is not None:
            attempt.progress.answered([one for _, one in asked if isinstance(one, Question)])
        for webhook, question in asked:
            webhook.response(question, attempt)


def _webhooks(api: Api, configurations: str, attempt: Attempt) -> Iterator[Webhook]:
    if attempt.progress is None or is_exempt(attempt):
        return
    if not api.store.collection(configurations).entries:
        return
    for configuration in api.list(configurations):
        for hook in configuration.get("webhooks") or ():
            yield Webhook(api, hook, mutating=configurations == MUTATING)


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook.

    Args:
        api: knows namespaces, services and versions.
        hook: as in its configuration.
        mutating: whether its answers may have patches.
    """

    api: Api
    hook: Obj
    mutating: bool

    @property
    def repeats(self) -> bool:
        """As of ``Mutation``."""
        return bool(self.hook.get("reinvocationPolicy") == "IfNeeded")

    def applied(self, attempt: Attempt) -> Attempt | None:
        """As of ``Mutation``.

        Raises:
            StatusError: the webhook denies the write, cannot be called, or its patch cannot be applied.
            Unanswered: it is to be asked.
        """
        found = self.seen(attempt)
        if found is None:
            return None
        try:
            question: Question | _UncalledError = self.question(found)
        except _UncalledError as error:
            question = error
        response = self.response(question, attempt)
        operations = self._operations(response)
        if not operations:
            return attempt
        name = self.hook["name"]
        if found.obj is None:
            raise internal(
                f'admission webhook "{name}" attempted to modify the object, which is not supported for this '
                "operation"
            )
        kind, resource = kind_of(self.api, found)
        try:
            changed = patches.json_patch(copied(found.obj), operations)
        except StatusError as error:
            raise internal(error.message.rpartition("our request: ")[2]) from error
        self._check_kind(changed, found.obj)
        changed, _ = decoded(changed, kind, resource)
        if "metadata" not in found.obj:  # options of a connection
            changed.pop("metadata", None)
        kind.default(changed)
        obj = in_version(self.api, dataclasses.replace(found, obj=changed), attempt.resource).obj
        return dataclasses.replace(attempt, obj=obj)

    def _check_kind(self, changed: Any, before: Obj) -> None:
        """Raise 500 for a patch that makes an object of another kind or version."""
        given = (
            [changed.get(key) for key in ("apiVersion", "kind")]
            if isinstance(changed, dict)
            else [None, None]
        )
        if not any(given) or given == [before.get("apiVersion"), before.get("kind")]:
            return
        version, kind = given
        if (other := self.api.registry.of_kind(str(version), str(kind))) is not None:
            decoded(changed, self.api.kind(other), other)
            raise StatusError(500, "", _unconverted(other, before))
        scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"
        raise internal(f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"')

    def seen(self, attempt: Attempt) -> Attempt | None:
        """The write in the version that the webhook is sent; None where it does not concern the webhook.

        Raises:
            StatusError: 403, if a match condition fails and ``failurePolicy`` is Fail.
        """
        hook = self.hook
        if not hook.get("rules"):
            return None
        namespace = namespace_of(self.api, attempt)
        found = seen(self.api, {**hook, "resourceRules": hook["rules"]}, attempt, namespace)
        if found is None or not hook.get("matchConditions"):
            return found
        evaluation = Evaluation(known_of(self.api, found, None))
        faults: list[str] = []
        for condition in hook["matchConditions"]:
            try:
                if evaluation.value(condition["expression"]) is not True:
                    return None
            except FailedError as error:
                faults.append(str(error))
        if not faults:
            return found
        if hook["failurePolicy"] == "Ignore":
            return None
        faults = list(dict.fromkeys(faults))
        text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        raise forbidden(attempt.resource, attempt.name, text)

    def question(self, attempt: Attempt) -> Question:
        """What the webhook is asked about a write that it sees.

        Raises:
            _UncalledError: nothing can be asked.
        """
        hook = self.hook
        client = hook["clientConfig"]
        version = next(one for one in hook["admissionReviewVersions"] if one in _VERSIONS)
        try:
            url, port = address_of(self.api, client, hook["timeoutSeconds"])
        except UnreachableError as error:
            raise _UncalledError(f"failed to call webhook: {error}") from error
        shown = {key: value for key, value in request_of(attempt).items() if value != "" or key == "name"}
        if not shown["name"]:
            del shown["name"]
        request = {**shown, "object": attempt.obj, "oldObject": attempt.old}
        return Question(
            url,
            port,
            client.get("caBundle") or "",
            hook["timeoutSeconds"],
            version,
            self.mutating,
            orjson.dumps(request),
            is_again=attempt.is_again,
        )

    def response(self, asked: Question | _UncalledError, attempt: Attempt) -> Obj:
        """What the webhook says of a write; nothing, if it fails and may.

        Args:
            asked: the question, or why it cannot be asked.
            attempt: the write; the webhook's warnings are added.

        Raises:
            StatusError: it denies the write, or fails and may not.
            Unanswered: it is to be asked.
        """
        name = self.hook["name"]
        if isinstance(asked, Question):
            assert attempt.progress is not None
            answer: Answer = attempt.progress.answered([asked])[0]
            fault, response = answer.fault, answer.response
        else:
            fault, response = str(asked), {}
        if fault:
            if self.hook["failurePolicy"] == "Ignore":
                return {}
            raise internal(f'failed calling webhook "{name}": {fault}')
        attempt.warnings.extend(str(one) for one in response.get("warnings") or ())
        if response.get("allowed") is not True:
            raise _denied(name, response.get("status") or {})
        return response

    def _operations(self, response: Obj) -> list[Any]:
        """The JSON patch of a response.

        Raises:
            StatusError: 500, if it cannot be read and the webhook may not fail.
        """
        if not response.get("patch"):
            return []
        try:
            operations = json.loads(base64.b64decode(response["patch"]))
            if isinstance(operations, list):
                return operations
            fault = f"json: cannot unmarshal {go_type(operations)} into Go value of type jsonpatch.Patch"
        except json.JSONDecodeError as error:
            sign = error.doc[error.pos : error.pos + 1]
            fault = (
                f"invalid character '{sign}' looking for beginning of value"
                if sign
                else "unexpected end of JSON input"
            )
        if self.hook["failurePolicy"] == "Ignore":
            return []
        why = f"received undecodable patch in webhook response: {fault}"
        raise internal(f'failed calling webhook "{self.hook["name"]}": {why}')


def _unconverted(other: Resource, before: Obj) -> str:
    """Why an object cannot become one of another kind."""
    group = before["apiVersion"].rpartition("/")[0]
    internal_version = f"{group.partition('.')[0] or 'core'}.{before['kind']}"
    return f"converting ({other.version}.{other.kind}) to ({internal_version}): unknown conversion"


def _denied(name: str, status: Obj) -> StatusError:
    """The refusal of a webhook, with the code, reason and details that it has given."""
    why = status.get("message") or status.get("reason")
    text = f'admission webhook "{name}" denied the request'
    message = f"{text}: {why}" if why else f"{text} without explanation"
    code = status.get("code") or 0
    return StatusError(max(code, 400), status.get("reason") or "", message, status.get("details") or {})
