"""The report's configuration: YAML or JSON in, typed settings out.

Secrets are not part of the file; see :mod:`mirror_report.config.credentials`.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from mirror_report.config.cluster import Cluster
from mirror_report.config.credentials import Credentials
from mirror_report.config.errors import ConfigError
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Budget, Settings, Spark, Warn
from mirror_report.config.validate import validate_cluster, validate_flow, validate_settings
from mirror_report.config.values import coerce, mapping, one_of, record, refuse_unknown, sequence
from mirror_report.engines import ENGINES


def load_settings(where: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the configuration.

    :param where: a path, or ``-`` for standard input (which may hold ``credentials``).
    :param environment: process environment; ``CREDENTIALS_DIRECTORY`` is looked up in it.
    :raises ConfigError: the document cannot be read or used.
    """
    environment = os.environ if environment is None else environment
    if where == "-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(where).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"configuration {where} cannot be read: {error.strerror}",
                "Name another one with --config, or deploy the report with its role",
            ) from error
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # The parser's own text would quote the line, and a line may hold a secret.
        mark = getattr(error, "problem_mark", None)
        at = f" at line {mark.line + 1}" if mark else ""
        raise ConfigError(f"configuration {where} is neither YAML nor JSON{at}") from None
    directory = environment.get("CREDENTIALS_DIRECTORY")
    return parse(document, Path(directory) if directory else None, secrets_allowed=where == "-")


def parse(
    document: Any, directory: Path | None = None, *, secrets_allowed: bool = True
) -> Settings:
    """Typed settings from a plain document.

    :raises ConfigError: an unknown key, a wrong type, a missing or undefined name.
    """
    top = mapping(document, "the configuration")
    version = top.get("version")
    if version != 1:
        raise ConfigError(
            f"version: {version!r} is not understood, this release reads version 1",
            "Deploy the configuration and the report from the same release",
        )
    refuse_unknown(top, [*(key.name for key in fields(Settings)), "version"], "")
    clusters = {
        alias: record(
            Cluster, {**mapping(cluster, f"clusters.{alias}"), "alias": alias}, f"clusters.{alias}"
        )
        for alias, cluster in mapping(top.get("clusters"), "clusters").items()
    }
    for cluster in clusters.values():
        validate_cluster(cluster)
    flows = tuple(
        _flow(mapping(flow, f"flows[{i}]"), f"flows[{i}]")
        for i, flow in enumerate(sequence(top.get("flows"), "flows"))
    )
    for flow in flows:
        validate_flow(flow, clusters)
    if len({flow.name for flow in flows}) != len(flows):
        raise ConfigError("flows: two flows have the same name")
    values = top.get("credentials")
    if values is not None and not secrets_allowed:
        raise ConfigError(
            "credentials: secrets do not belong into the file; remove the key, the files of "
            "$CREDENTIALS_DIRECTORY are read"
        )
    parsed: dict[str, Any] = {
        "clusters": clusters,
        "flows": flows,
        **{
            name: record(kind, mapping(top.get(name) or {}, name), name)
            for name, kind in (("warn", Warn), ("budget", Budget), ("spark", Spark))
        },
        "credentials": Credentials({} if values is None else _credential_values(values), directory),
    }
    plain = {
        key.name: coerce(top[key.name], str(key.type), key.name)
        for key in fields(Settings)
        if key.name in top and key.name not in parsed
    }
    settings = Settings(**parsed, **plain)
    validate_settings(settings)
    return settings


def _flow(given: Mapping[str, Any], where: str) -> Flow:
    if isinstance(engine := given.get("engine"), str):
        one_of(engine, ENGINES, f"flows.{given.get('name')}.engine")
    return record(Flow, given, where)


def _credential_values(value: Any) -> dict[str, str]:
    given = mapping(value, "credentials")
    for name, secret in given.items():
        if not isinstance(secret, str):
            raise ConfigError(f"credentials.{name}: text is expected")
    return given
