"""The report's configuration: YAML or JSON in, typed settings out.

Secrets are not part of the file; see :mod:`mirror_report.config.credentials`.
"""

from __future__ import annotations

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
from mirror_report.config.judge import judge_cluster, judge_flow, judge_spark
from mirror_report.config.settings import Budget, Settings, Spark, Warn
from mirror_report.config.values import coerce, mapping, record, refuse_unknown, sequence, typed


def load(where: str, environment: Mapping[str, str] | None = None) -> Settings:
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
                f"configuration {where} cannot be read: {error.strerror}. Name another one with "
                "--config, or deploy the report with its role"
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
            f"version: {version!r} is not understood, this release reads version 1. "
            "Deploy the configuration and the report from the same release"
        )
    allowed = [one.name for one in fields(Settings)] + ["version"]
    refuse_unknown(top, allowed, "")
    clusters = {
        alias: record(
            Cluster, {**mapping(one, f"clusters.{alias}"), "alias": alias}, f"clusters.{alias}"
        )
        for alias, one in mapping(top.get("clusters"), "clusters").items()
    }
    for cluster in clusters.values():
        judge_cluster(cluster)
    flows = tuple(
        record(Flow, mapping(one, f"flows[{i}]"), f"flows[{i}]")
        for i, one in enumerate(sequence(top.get("flows"), "flows"))
    )
    for flow in flows:
        judge_flow(flow, clusters)
    if len({flow.name for flow in flows}) != len(flows):
        raise ConfigError("flows: two flows have the same name")
    values = top.get("credentials")
    if values is not None and not secrets_allowed:
        raise ConfigError(
            "credentials: secrets do not belong into the file; remove the key, the files of "
            "$CREDENTIALS_DIRECTORY are read"
        )
    bucket_seconds = typed(top.get("bucket_seconds", 60), int, "bucket_seconds")
    if bucket_seconds < 1:
        raise ConfigError("bucket_seconds: must be at least 1")
    spark = record(Spark, mapping(top.get("spark") or {}, "spark"), "spark")
    judge_spark(spark)
    budget = record(Budget, mapping(top.get("budget") or {}, "budget"), "budget")
    for name in ("max_bytes", "max_records", "max_lag_records", "deadline_seconds", "scrub_bytes"):
        value, least = getattr(budget, name), 0 if name == "scrub_bytes" else 1
        if value is not None and value < least:
            raise ConfigError(f"budget.{name}: must be at least {least}")
    history_days = typed(top.get("history_days", 30), int, "history_days")
    if history_days < 1:
        raise ConfigError("history_days: must be at least 1")
    intervals = {
        name: coerce(top.get(name, getattr(Settings, name)), "float", name)
        for name in ("interval_seconds", "lag_interval_seconds")
    }
    for name, value in intervals.items():
        if not value > 0:
            raise ConfigError(f"{name}: must be above 0")
    return Settings(
        **intervals,
        clusters=clusters,
        flows=flows,
        state_directory=Path(
            typed(top.get("state_directory", "/var/lib/mirror-report"), str, "state_directory")
        ),
        metrics_partitions=typed(top.get("metrics_partitions", False), bool, "metrics_partitions"),
        bucket_seconds=bucket_seconds,
        history_days=history_days,
        metrics_directory=_path(top, "metrics_directory"),
        web_directory=_path(top, "web_directory"),
        warn=record(Warn, mapping(top.get("warn") or {}, "warn"), "warn"),
        budget=budget,
        spark=spark,
        credentials=Credentials({} if values is None else _credential_values(values), directory),
    )


def _path(top: Mapping[str, Any], key: str) -> str | None:
    """An absolute path, or nothing."""
    if top.get(key) is None:
        return None
    path: str = typed(top[key], str, key)
    if not path.startswith("/"):
        raise ConfigError(f"{key}: {path!r} is no absolute path")
    return path


def _credential_values(value: Any) -> dict[str, str]:
    given = mapping(value, "credentials")
    for name, secret in given.items():
        if not isinstance(secret, str):
            raise ConfigError(f"credentials.{name}: text is expected")
    return given
