# syntax=docker/dockerfile:1
# Two stages. The first installs the packages of the lock files, verified by hash, and collects the files that
# plimsoll needs to run; the second consists of these only: no shell, no package manager.
# deploy/image/build.py builds it on a base of Debian's packages where no registry is reached;
# tests/deploy/test_image.py executes the same steps without a container engine.
ARG PYTHON=python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1

FROM ${PYTHON} AS build
ENV PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# The compiler of the engine's kernel stays in this stage; its packages are signed by the distribution.
RUN ["apt-get", "update"]
# hadolint ignore=DL3008
RUN ["apt-get", "install", "--yes", "--no-install-recommends", "gcc", "libc6-dev"]
COPY requirements-build.lock requirements-runtime.lock ./
RUN ["pip", "install", "--require-hashes", "--only-binary=:all:", "--requirement=requirements-build.lock"]
RUN ["pip", "install", "--require-hashes", "--only-binary=:all:", "--no-compile", "--target=/installed", "--requirement=requirements-runtime.lock"]
COPY pyproject.toml README.md LICENSE ./
COPY cel cel
COPY core core
COPY client client
COPY optimal optimal
COPY operator operator
COPY kubectl kubectl
COPY examples/consolidate.yaml examples/devices.yaml examples/fair-share.yaml examples/rebalance-dry-run.yaml examples/rebalance-enforce.yaml examples/rebalancing-rules.yaml examples/scheduler.yaml examples/unhealthy-nodes.yaml examples/
RUN ["pip", "install", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile", "--target=/installed", "./cel", "./core", "./client", "./optimal", "./kubectl", "."]
COPY deploy/image deploy/image
# What the image holds, with all that it requires: "plimsoll" alone is the smallest, "kubectl-plimsoll" the command line.
ARG CONTENT="plimsoll[optimal,devices]"
RUN ["python", "deploy/image/assemble.py", "/assembled", "/installed"]

FROM scratch
LABEL org.opencontainers.image.title="plimsoll" \
      org.opencontainers.image.description="A Kubernetes scheduler and descheduler in one operator." \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/usr/local/bin:/usr/bin TMPDIR=/dev/shm PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /assembled /
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["python", "-m", "plimsoll"]
CMD ["run"]
