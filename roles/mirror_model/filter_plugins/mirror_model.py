"""Filters of the mirror's model, which the package in module_utils does and describes."""

import functools
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError

ROLE = Path(__file__).resolve().parents[1]
ADVISORIES = ROLE.parents[1] / "files" / "advisories.yml"


FILTERS = {
    "certificate_principal": "principals.certificate_principal",
    "kafka_advisories": "advisories.site_advisories",
    "kafka_connect_rest": "instances.kafka_connect_rest",
    "kafka_credentials": "logins.kafka_credentials",
    "kafka_exposed_properties": "kafka_names.exposed_properties",
    "kafka_open_jmx_port": "jmx.open_jmx_port",
    "kafka_operator_files": "operators.operator_files",
    "kafka_python_client": "logins.kafka_python_client",
    "mirror_collisions": "collisions.mirror_collisions",
    "mirror_connectors": "instances.mirror_connectors",
    "mirror_flow_names": "instances.mirror_flow_names",
    "mirror_identity_changes": "instances.mirror_identity_changes",
    "mirror_model_findings": "validate.validate_site",
    "mirror_on_host": "instances.mirror_on_host",
    "mirror_owners_on": "instances.mirror_owners_on",
    "mirror_paths": "instances.mirror_paths",
    "mirror_permissions": "permissions.mirror_permissions",
    "mirror_process": "instances.mirror_process",
    "mirror_report_model": "report.mirror_report_model",
    "mirror_site": "site.mirror_site",
    "mirror_site_without": "collisions.mirror_site_without",
    "mirror_socket_buffers": "instances.mirror_socket_buffers",
    "mirror_topic_flows": "report.mirror_topic_flows",
    "server_certificate_problems": "certificates.server_certificate_problems",
    "to_environment_file": "render.to_environment_file",
    "to_jaas": "render.to_jaas",
    "to_java_properties": "render.to_java_properties",
    "to_kafka_acls": "permissions.to_kafka_acls",
    "to_plain_users": "render.to_plain_users",
}
NEED_ADVISORIES = ("advisories.site_advisories", "validate.validate_site")


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


@functools.cache
def _advisories() -> Any:
    return yaml.safe_load(ADVISORIES.read_text(encoding="utf-8"))["advisories"]


def _filter(function: str) -> Callable[..., Any]:
    """A function of the package, given plain values; a problem is a message, not a traceback."""
    module, name = function.split(".")

    def call(*arguments: Any, **named: Any) -> Any:
        plain = _package("keys").plain
        if function in NEED_ADVISORIES:
            named["advisories"] = _advisories()
        try:
            return getattr(_package(module), name)(
                *map(plain, arguments), **{key: plain(value) for key, value in named.items()}
            )
        except _package("keys").ModelError as problem:
            raise AnsibleFilterError(str(problem)) from None

    return call


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {name: _filter(function) for name, function in FILTERS.items()}
