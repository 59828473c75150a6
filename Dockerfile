# syntax=docker/dockerfile:1
# Two stages: the first downloads what requirements.lock names, checked by hash, and builds the wheel; the
# second has Python, plimsoll and its dependencies, a numeric user and nothing to do with a shell.
# Pin the base by digest too: docker build --build-arg PYTHON=python:3.11.13-slim-bookworm@sha256:...
ARG PYTHON=python:3.11.13-slim-bookworm

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements.lock .
RUN ["pip", "download", "--only-binary=:all:", "--require-hashes", "--dest=/wheels", "--requirement=requirements.lock"]
RUN ["pip", "install", "--no-index", "--find-links=/wheels", "hatchling"]
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
RUN ["pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir=/wheels", "."]
# Only what plimsoll needs at run time, out of the files whose hashes were checked.
RUN ["pip", "install", "--no-index", "--find-links=/wheels", "--ignore-installed", "--prefix=/install", "plimsoll"]

FROM ${PYTHON}
LABEL org.opencontainers.image.title="plimsoll" \
      org.opencontainers.image.description="A Kubernetes scheduler and descheduler in one operator." \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /install /usr/local
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["python", "-m", "plimsoll"]
CMD ["run"]
