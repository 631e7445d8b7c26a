"""Which keys of flows and workers MirrorMaker 2 reads, and where it reads them."""

from collections.abc import Iterable, Mapping
from typing import Any

from .. import client_names, kafka_names, keys
from ..keys import Properties
from ..owners import Owner
from ..validation import Validation
from . import names, settable, settings

NO_EXACTLY_ONCE = (
    "exactly-once is not offered: it takes two rolling restarts, group positions stay "
    "at-least-once, and its markers make offsets useless for proving that nothing is missing; "
    "remove it"
)


def validate_flow_keys(
    validation: Validation,
    path: str,
    properties: Properties,
    version: str,
    owned: Mapping[str, str],
) -> None:
    """Validate ``properties`` of a flow.

    :param version: the release that reads them.
    :param owned: keys that the model writes -> what to do instead.
    """
    line = kafka_names.line_of(version)
    settable_keys = settable.connector_keys(line, owned)
    clients: dict[str, dict[str, Any]] = {"consumer.": {}, "producer.override.": {}}
    for key, value in properties.items():
        prefix = next(filter(key.startswith, clients), "")
        if key in owned or key in settable.REMOVED_FLOW_KEYS:
            _obsolete(validation, path, key, owned, settable.REMOVED_FLOW_KEYS)
        elif key in settable_keys:
            continue  # some of these look like a client's: consumer.poll.timeout.ms
        elif prefix:
            clients[prefix][key.removeprefix(prefix)] = value
        elif key.startswith(("source.cluster.", "target.cluster.", "config.providers.")):
            validation.refuse(
                f"{path}['{key}']: is written from the model; set kafka_clusters instead"
            )
        elif misplaced := _misplaced_client_key(key):
            validation.refuse(f"{path}['{key}']: {misplaced}")
        elif not key.startswith(tuple(f"{kind}." for kind in names.CONNECTOR_PLUGINS)):
            of_worker = key in names.WORKER["3.9"] | names.WORKER["4.3"]
            place = "it belongs into worker_properties of the instance" if of_worker else ""
            _validate_known(validation, path, key, settable_keys, version, place)
    for prefix, of_client in clients.items():
        _validate_client(validation, path, prefix, of_client, version)


def _misplaced_client_key(key: str) -> str:
    return next(
        (
            cure.format(key.removeprefix(prefix))
            for prefix, cure in settable.CLIENT_KEYS.items()
            if key.startswith(prefix)
        ),
        "",
    )


def _obsolete(
    validation: Validation,
    path: str,
    key: str,
    owned: Mapping[str, str],
    removed: Mapping[str, str],
) -> None:
    if key in owned:
        validation.refuse(f"{path}['{key}']: is written from the model; {owned[key]}")
    else:
        validation.refuse(f"{path}['{key}']: is not read by MirrorMaker 2; {removed[key]}")


def _validate_known(
    validation: Validation,
    path: str,
    key: str,
    readable: frozenset[str],
    version: str,
    elsewhere: str,
) -> None:
    """Refuse a key that the release does not know: gone, of another place, or mistyped.

    :param elsewhere: where it belongs; empty if it belongs nowhere.
    """
    if kafka_names.line_of(version) != "3.9" and key in settable.REMOVED_IN_4:
        validate_removed(validation, path, [key], version)
    elif key not in readable:
        cure = elsewhere or keys.suggestion(key, readable)
        validation.refuse(f"{path}['{key}']: Kafka {version} does not know it here; {cure}")


def _validate_client(
    validation: Validation, path: str, prefix: str, properties: Properties, version: str
) -> None:
    line = kafka_names.line_of(version)
    belongs = "set kafka_clusters.<alias>, or its properties"
    owned = {**dict.fromkeys(kafka_names.SECURITY[line], belongs), **settable.OWNED_CLIENT_KEYS}
    readable = kafka_names.CLIENTS[prefix.partition(".")[0]][line]
    client_names.validate_names(validation, path, properties, readable, prefix, owned)
    validate_removed(validation, path, properties, version, prefix)


def validate_removed(
    validation: Validation, path: str, properties: Iterable[str], version: str, prefix: str = ""
) -> None:
    """Refuse keys that ended with 3.9, if the release is a later one."""
    for key in properties:
        if kafka_names.line_of(version) != "3.9" and key in settable.REMOVED_IN_4:
            cure = settable.REMOVED_IN_4[key]
            validation.refuse(
                f"{path}['{prefix}{key}']: Kafka {version} no longer reads it; {cure}"
            )


def validate_worker_keys(
    validation: Validation, owner: Owner, owned: Mapping[str, str], settable_keys: frozenset[str]
) -> None:
    """Validate ``worker_properties`` of an owner.

    :param owned: keys that the model writes -> what to do instead.
    :param settable_keys: keys that a user may write, clients' apart.
    """
    path, version = f"{owner.path}.worker_properties", owner.version(settings.KAFKA_VERSION)
    line = kafka_names.line_of(version)
    clients: dict[str, dict[str, Any]] = {f"{client}.": {} for client in kafka_names.CLIENTS}
    for key, value in owner.settings["worker_properties"].items():
        prefix = next(filter(key.startswith, clients), "")
        if key in owned or key in settable.REMOVED_WORKER_KEYS:
            _obsolete(validation, path, key, owned, settable.REMOVED_WORKER_KEYS)
        elif key in kafka_names.SECURITY[line]:
            validation.refuse(
                f"{path}['{key}']: belongs to the cluster; set it in kafka_clusters.<alias>, or "
                "its properties"
            )
        elif key.startswith("producer.override."):
            validation.refuse(
                f"{path}['{key}']: write producer.{key.removeprefix('producer.override.')}"
            )
        elif prefix:
            clients[prefix][key.removeprefix(prefix)] = value
        elif key.startswith("config.providers."):
            validation.refuse(f"{path}['{key}']: {owned['config.providers']}")
        elif key == "exactly.once.source.support" and value not in (None, "disabled"):
            validation.refuse(f"{path}['{key}']: {NO_EXACTLY_ONCE}")
        elif not (key.startswith(f"{kafka_names.REST_TLS}ssl.") or key in settable_keys):
            of_flow = key in names.CONNECTOR["3.9"] | names.CONNECTOR["4.3"]
            place = "it belongs into properties of the flows in mirror_flows" if of_flow else ""
            _validate_known(validation, path, key, settable_keys, version, place)
    for prefix, properties in clients.items():
        _validate_client(validation, path, prefix, properties, version)
    if (interval := settings.worker_value(owner, "offset.flush.interval.ms")) is not None:
        validate_number(validation, f"{path}['offset.flush.interval.ms']", interval)


def validate_number(validation: Validation, path: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        validation.refuse(f"{path}: must be a whole number of at least 1, without quotes")
