"""TLS settings of a connection to the API server, from a kubeconfig or a service account."""

import ssl

from kubernetes_asyncio import client


def tls_of(configuration: client.Configuration) -> ssl.SSLContext:
    """The settings, as kubernetes-asyncio's own client makes them; without certificates for plain HTTP."""
    if str(configuration.host).startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the machine's authorities takes 40 ms
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.disable_strict_ssl_verification:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
