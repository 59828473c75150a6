"""Ingresses and CertificateSigningRequests over HTTP, with the words of kube-apiserver 1.36.2."""

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from roadstead.clients import ApiError, RunningCluster

INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def ingress(name: str, **spec: Any) -> Any:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def rule(**path: Any) -> Any:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    return {"host": "a.example.com", "http": {"paths": [{"backend": backend, **path}]}}


def signing_request(name: str, signer: str = "kubernetes.io/kube-apiserver-client", **spec: Any) -> Any:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": signer,
        "usages": ["client auth"],
        **spec,
    }
    head = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def decide(cluster: RunningCluster, name: str, decision: str) -> Any:
    """As ``kubectl certificate approve`` and ``deny`` do."""
    condition = {"type": decision, "status": "True", "reason": "Test", "message": "for a test"}
    found = cluster.get(f"csr/{name}")
    found["status"]["conditions"] = [condition]
    return cluster.request("PUT", f"{REQUESTS}/{name}/approval", found)


def test_an_ingress_is_stored_and_its_status_is_written_apart(roadstead: RunningCluster) -> None:
    made = roadstead.request("POST", INGRESSES, ingress("web", rules=[rule(path="/", pathType="Prefix")]))
    assert (made["metadata"]["generation"], made["status"]) == (1, {"loadBalancer": {}})

    made["status"] = {"loadBalancer": {"ingress": [{"ip": "10.1.2.3"}]}}
    roadstead.request("PUT", f"{INGRESSES}/web/status", made)

    (line,) = roadstead.kubectl("get", "ingress", "--no-headers").splitlines()
    assert line.split()[:5] == ["web", "<none>", "a.example.com", "10.1.2.3", "80"]


def test_an_ingress_gets_the_default_class(roadstead: RunningCluster) -> None:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    roadstead.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": "nginx", "annotations": annotations},
            "spec": {"controller": "example.com/nginx"},
        }
    )

    roadstead.apply(ingress("web", rules=[rule(path="/", pathType="Prefix")]))

    assert roadstead.get("ingress/web")["spec"]["ingressClassName"] == "nginx"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"),
        (
            {"rules": [rule(path="/")]},
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
        ),
        (
            {"rules": [rule(path="x", pathType="Exact")]},
            'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path',
        ),
    ],
)
def test_a_faulty_ingress_is_refused(roadstead: RunningCluster, spec: Any, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        roadstead.request("POST", INGRESSES, ingress("bad", **spec))

    assert refused.value.code == 422
    assert f'Ingress.networking.k8s.io "bad" is invalid: {message}' in str(refused.value)


def test_an_approved_request_is_signed(roadstead: RunningCluster) -> None:
    """For its subject and the time that it asks for; who asks is the server's to say."""
    made = roadstead.request(
        "POST", REQUESTS, signing_request("jane", expirationSeconds=86400, username="root")
    )
    assert made["spec"]["username"] == "roadstead-admin"
    assert "certificate" not in made["status"]

    decide(roadstead, "jane", "Approved")

    signed = roadstead.wait_for("csr/jane", until=lambda one: one["status"].get("certificate"))
    certificate = x509.load_pem_x509_certificate(base64.b64decode(signed["status"]["certificate"]))
    assert certificate.subject.rfc4514_string() == "CN=jane"
    valid = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert valid.total_seconds() == 86400 + 300
    (line,) = roadstead.kubectl("get", "csr", "--no-headers").splitlines()
    assert line.split()[2:] == [
        "kubernetes.io/kube-apiserver-client",
        "roadstead-admin",
        "24h",
        "Approved,Issued",
    ]


def test_a_denied_request_and_one_of_another_signer_are_not_signed(roadstead: RunningCluster) -> None:
    """The status of the latter is its signer's to write."""
    roadstead.apply(signing_request("denied"), signing_request("other", "example.com/signer"))
    decide(roadstead, "denied", "Denied")
    approved = decide(roadstead, "other", "Approved")
    assert approved["status"]["conditions"][0]["lastTransitionTime"]
    roadstead.apply(signing_request("last"))
    decide(roadstead, "last", "Approved")
    roadstead.wait_for("csr/last", until=lambda one: one["status"].get("certificate"))

    assert "certificate" not in roadstead.get("csr/denied")["status"]
    assert "certificate" not in roadstead.get("csr/other")["status"]


def test_a_faulty_request_is_refused(roadstead: RunningCluster) -> None:
    faulty = signing_request("bad", "nosigner", request="aGVsbG8=", usages=[])
    with pytest.raises(ApiError) as refused:
        roadstead.request("POST", REQUESTS, faulty)

    assert str(refused.value).endswith(
        'is invalid: [spec.request: Invalid value: "aGVsbG8=": PEM block type must be CERTIFICATE REQUEST, '
        'spec.usages: Required value, spec.signerName: Invalid value: "nosigner": must be a fully qualified '
        "domain and path of the form 'example.com/signer-name']"
    )
