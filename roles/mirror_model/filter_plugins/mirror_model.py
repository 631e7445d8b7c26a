"""Filters of the mirror's model; the work is done by the package in module_utils/mirror_model."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError

ROLE = Path(__file__).resolve().parents[1]
ADVISORIES = ROLE.parents[1] / "files" / "advisories.yml"


def _package(module: str) -> Any:
    """One module of the package, which lies beside this plugin and on no search path."""
    name = "mirror_model"
    if name not in sys.modules:
        location = ROLE / "module_utils" / name / "__init__.py"
        spec = importlib.util.spec_from_file_location(
            name, location, submodule_search_locations=[str(location.parent)]
        )
        if spec is None or spec.loader is None:
            raise AnsibleFilterError(f"cannot load {location}")
        package = importlib.util.module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{name}.{module}")


def _call(module: str, function: str, *arguments: Any, **named: Any) -> Any:
    """Call into the package with plain values, so that a problem is a message, not a traceback."""
    plain = _package("plain").plain
    try:
        return getattr(_package(module), function)(
            *map(plain, arguments), **{name: plain(value) for name, value in named.items()}
        )
    except _package("errors").ModelError as problem:
        raise AnsibleFilterError(str(problem)) from None


def _advisories() -> Any:
    return yaml.safe_load(ADVISORIES.read_text(encoding="utf-8"))["advisories"]


def mirror_model_findings(
    clusters: Mapping[str, Any],
    flows: Any,
    instances: Any,
    connect_clusters: Any,
    accept: Any,
    hosts: Sequence[str],
    groups: Mapping[str, Any] | None = None,
) -> Any:
    """Judge the whole inventory: {errors: [...], warnings: [...]}, free of secrets."""
    return _call(
        "judge", "findings", clusters, flows, instances, connect_clusters, accept,
        hosts=hosts, advisories=_advisories(), groups=groups,
    )  # fmt: skip


def mirrormaker_instance(
    clusters: Mapping[str, Any],
    flows: Any,
    instances: Any,
    name: str,
    node: Mapping[str, Any] | None = None,
) -> Any:
    """Everything a mirror process is made of; its key credentials is SECRET."""
    return _call("instances", "mirrormaker_instance", clusters, flows, instances, name, node)


def mirror_identity_changes(remembered: Mapping[str, Any], current: Mapping[str, Any]) -> Any:
    """What would mirror everything again or leave a gap: a list of texts, empty if nothing."""
    return _call("instances", "mirror_identity_changes", remembered, current)


def kafka_credentials(clusters: Mapping[str, Any], alias: str, identity: str) -> Any:
    """File name to content, SECRET, of what one identity needs to reach one cluster."""
    return _call("clusters", "kafka_credentials", clusters, alias, identity)


def kafka_python_client(clusters: Mapping[str, Any], alias: str, identity: str) -> Any:
    """Connection of kafka-python for one identity and cluster; its key password is SECRET."""
    return _call("clusters", "kafka_python_client", clusters, alias, identity)


def kafka_operator_files(
    clusters: Mapping[str, Any], identities: Mapping[str, Any], directory: str
) -> Any:
    """{properties, credentials} of Kafka's scripts as chosen identities; credentials is SECRET."""
    return _call("operators", "operator_files", clusters, identities, directory)


def mirror_report_model(
    clusters: Mapping[str, Any],
    flows: Any,
    instances: Any,
    identity: str,
    only: Any = None,
    sysconfig_directory: str = "/etc/sysconfig",
    accept: Any = (),
) -> Any:
    """{clusters, flows} of the report's configuration, free of secrets."""
    return _call(
        "report", "mirror_report_model", clusters, flows, instances, identity,
        only=only, sysconfig_directory=sysconfig_directory, accept=accept,
    )  # fmt: skip


def mirror_permissions(
    clusters: Mapping[str, Any], flows: Any, instances: Any, report_identity: str = "report"
) -> Any:
    """What the placed flows need on each cluster: rows of ACLs, none of which implies another."""
    return _call("permissions", "mirror_permissions", clusters, flows, instances, report_identity)


def to_kafka_acls(permissions: Sequence[Mapping[str, Any]], clusters: Mapping[str, Any]) -> Any:
    """Alias to commands of kafka-acls.sh that add these permissions."""
    return _call("permissions", "to_kafka_acls", permissions, clusters)


def kafka_advisories(version: str, process: str, accept: Sequence[str] = ()) -> Any:
    """Advisories against one kind of process of a release: [{cve, text, refused}]."""
    return _call(
        "advisories", "kafka_advisories", str(version), process, accept, table=_advisories()
    )


def kafka_exposed_properties(properties: Mapping[str, Any]) -> Any:
    """Names of a broker's properties that hold a secret in clear or a reference."""
    return _call("secret_names", "exposed_properties", properties)


def to_java_properties(properties: Mapping[str, Any]) -> Any:
    """Text that java.util.Properties reads back as exactly these properties."""
    return _call("render", "to_java_properties", properties)


def to_environment_file(variables: Mapping[str, Any]) -> Any:
    """Text that systemd's EnvironmentFile= reads back as exactly these variables."""
    return _call("render", "to_environment_file", variables)


def to_jaas(identity: Mapping[str, Any]) -> Any:
    """Complete value of sasl.jaas.config, SECRET."""
    return _call("render", "to_jaas", identity)


def to_plain_users(identities: Sequence[Mapping[str, Any]]) -> Any:
    """Complete value of a broker's sasl.jaas.config for PLAIN, SECRET."""
    return _call("render", "to_plain_users", identities)


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {
            function.__name__: function
            for function in (
                mirror_model_findings,
                mirrormaker_instance,
                mirror_identity_changes,
                kafka_credentials,
                kafka_python_client,
                kafka_operator_files,
                mirror_report_model,
                mirror_permissions,
                to_kafka_acls,
                kafka_advisories,
                kafka_exposed_properties,
                to_java_properties,
                to_environment_file,
                to_jaas,
                to_plain_users,
            )
        }
