"""The Kubernetes API, one module for each resource."""

from plimsoll.kube.piecemeal import prepare

prepare()
