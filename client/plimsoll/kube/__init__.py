"""The Kubernetes API, one module for each resource."""

from plimsoll.kube.session.piecemeal import prepare

prepare()
