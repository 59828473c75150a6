"""An operator: a Database gets a claim, a first Job, and a Deployment; a last Job backs it up.

Its webhooks refuse a database whose name is a reserved word, and label each.
"""

import os

import kopf
from kubernetes_asyncio import client, config

FINALIZER = "example.com/backup"
CODE = "roadstead.test/exit-code"


@kopf.on.startup()
async def connect(settings, memo, **_):
    await config.load_kube_config(os.environ["KUBECONFIG"])
    memo.api = client.ApiClient()
    settings.networking.error_backoffs = [0.1, 0.2, 0.5, 1, 1, 1]
    settings.persistence.finalizer = FINALIZER
    certificates = os.environ["CERTIFICATES"]
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", certfile=f"{certificates}/tls.crt", pkeyfile=f"{certificates}/tls.key"
    )
    settings.admission.managed = "databases.example.com"


@kopf.on.cleanup()
async def disconnect(memo, **_):
    await memo.api.close()


@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.on.validate("databases", operations={"CREATE"})
def reserved(name, **_):
    if name == "template0":
        raise kopf.AdmissionError(f"{name} is a reserved word", code=422)


@kopf.on.mutate("databases", operations={"CREATE"})
def label(spec, patch, **_):
    patch.metadata.labels["engine"] = spec["engine"]
    # kopf 1.45 adds it by a JSON patch that tests the version. If that patch's answer is lost, the second try
    # is refused, since the first one took effect; kopf then calls no handler at the event of the first one.
    patch.metadata["finalizers"] = [FINALIZER]


def template(name, policy="Always", code="0", **spec):
    annotations = {"roadstead.test/exit-after": "0.1", CODE: code} if policy == "Never" else {}
    container = {"name": "main", "image": "database:1"}
    spec = {"containers": [container], "restartPolicy": policy, "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": spec}


async def ensure(create, namespace, body):
    """Create an object, unless it is there already."""
    try:
        await create(namespace, body)
    except client.ApiException as error:
        if error.status != 409:
            raise kopf.TemporaryError(f"{error.status}: {error.body}", delay=0.5) from error


def job(name, step, *, fails=False):
    spec = {"backoffLimit": 0, "template": template(name, "Never", "1" if fails else "0")}
    return {"metadata": {"name": f"{name}-{step}", "labels": {"app": name}}, "spec": spec}


async def ended(memo, name, namespace):
    """Whether a Job is complete; a failed one is an error."""
    found = await client.BatchV1Api(memo.api).read_namespaced_job(name, namespace)
    kinds = {one.type for one in found.status.conditions or () if one.status == "True"}
    if "Failed" in kinds:
        raise kopf.PermanentError(f"{name} failed")
    return "Complete" in kinds


@kopf.on.create("databases", errors=kopf.ErrorsMode.TEMPORARY, backoff=0.5)
async def create(spec, name, namespace, patch, memo, **_):
    request = {"requests": {"storage": f"{spec['size']}Gi"}}
    claim = {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": request}}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    first = job(name, "init", fails=spec.get("failing", False))
    deployment = {
        "metadata": {"name": name},
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, volumes=volumes),
        },
    }
    for body in (claim, first, deployment):
        kopf.adopt(body)
    await ensure(client.CoreV1Api(memo.api).create_namespaced_persistent_volume_claim, namespace, claim)
    await ensure(client.BatchV1Api(memo.api).create_namespaced_job, namespace, first)
    try:
        if not await ended(memo, f"{name}-init", namespace):
            raise kopf.TemporaryError("it is being initialized", delay=0.1)
    except kopf.PermanentError as error:
        patch.status.update(phase="Failed", message=str(error))
        raise
    await ensure(client.AppsV1Api(memo.api).create_namespaced_deployment, namespace, deployment)
    patch.status.update(phase="Ready", conditions=[{"type": "Ready", "status": "True"}])


@kopf.on.update("databases", field="spec.replicas", errors=kopf.ErrorsMode.TEMPORARY, backoff=0.2)
async def scale(new, name, namespace, patch, memo, **_):
    apps = client.AppsV1Api(memo.api)
    deployment = await apps.read_namespaced_deployment(name, namespace)
    deployment.spec.replicas = new
    await apps.replace_namespaced_deployment(name, namespace, deployment)  # 409 if it has changed
    patch.status["replicas"] = new


@kopf.on.delete("databases", errors=kopf.ErrorsMode.TEMPORARY, backoff=0.2)
async def back_up(spec, name, namespace, memo, **_):
    if not spec["backup"]:
        return
    try:
        await client.BatchV1Api(memo.api).create_namespaced_job(namespace, job(name, "backup"))
    except client.ApiException as error:
        if error.status == 403:  # the namespace goes as well
            return
        if error.status != 409:
            raise
    if not await ended(memo, f"{name}-backup", namespace):
        raise kopf.TemporaryError("it is being backed up", delay=0.1)
