"""What connectors of MirrorMaker 2 are asked, whichever workers run them."""

import re

from .. import regex
from ..keys import Flow
from ..owners import Owner
from ..validation import Validation
from . import names, settings, topics, validate_keys


def validate_flow(validation: Validation, path: str, flow: Flow) -> None:
    """Refuse or mention what loses, misplaces or changes records."""
    properties = flow["properties"]
    if str(properties.get("errors.tolerance", "none")).lower() == "all":
        validation.danger(
            "errors.tolerance", flow["name"],
            f"{path}['errors.tolerance']: all drops records that cannot be written and "
            "goes on; remove it",
        )  # fmt: skip
    if str(properties.get("emit.offset-syncs.enabled")).lower() == "false":
        if flow["consumer_groups"]:
            validation.refuse(
                f"{path}['emit.offset-syncs.enabled']: without offset syncs no group "
                "can follow; remove it, or consumer_groups"
            )
        else:
            validation.warn(
                f"{path}['emit.offset-syncs.enabled']: without offset syncs the report "
                "cannot see target offsets shift; remove it"
            )
    for key in names.CONNECTOR_PLUGINS:
        if properties.get(key):
            validation.warn(
                f"{path}['{key}']: changes records, so the report will call them altered"
            )


def validate_names(
    validation: Validation, flow: Flow, owner: Owner, named: topics.Policy, separator_of: str
) -> None:
    """Validate the names that a flow's connectors make, and what else stands in several layers.

    :param named: the policy of the names.
    :param separator_of: the variable that holds the separator, ``{0}`` the owner and ``{1}`` the
        path of the flow.
    """
    path = validation.paths[flow["name"]]
    where = f"{separator_of.format(owner, path)}['replication.policy.separator']"
    if not topics.SEPARATOR.fullmatch(named.separator):
        validation.refuse(f"{where}: a topic name could not hold it; use '.', '-' or '_'")
        return
    for side in ("source", "target"):
        if named.separator in flow[side]:
            validation.refuse(
                f"{path}.{side}: '{flow[side]}' holds the separator '{named.separator}', so "
                "MirrorMaker 2 could not tell the alias from the topic's name; set another "
                f"{where}"
            )
    for topic in filter(regex.is_literal, flow["topics"]):
        if any(re.fullmatch(pattern, topic) for pattern in topics.unmirrored(flow, named)):
            validation.refuse(
                f"{path}.topics: MirrorMaker 2 never mirrors '{topic}', whose name is one of its "
                f"own or of what came from '{flow['target']}'; remove it"
            )
    if named.line == "3.9":
        validation.warn(
            f"{owner.path}.kafka_version: MirrorMaker 2 takes along every topic whose name ends in "
            "'heartbeats', whatever topics says, and one whose copy would have more than "
            f"{regex.LONGEST_NAME} letters ends a task with all its partitions; use "
            f"{settings.KAFKA_VERSION} where you do not trust whoever may make topics on the source"
        )
    if flow["target"] in validation.sound:
        _validate_acks(validation, owner, flow)
    for key, value in settings.own_factors(flow, owner).items():
        validate_keys.validate_number(
            validation, f"{key} of '{flow['name']}' or its {owner.kind.name}", value
        )


def _validate_acks(validation: Validation, owner: Owner, flow: Flow) -> None:
    """Mention acknowledgements that a failing broker can belie, in whatever layer they are set."""
    layers = (
        (f"kafka_clusters.{flow['target']}.properties['acks']",
         validation.clusters[flow["target"]].get("properties") or {}, "acks"),
        (f"{owner.path}.worker_properties['producer.acks']", owner.settings["worker_properties"],
         "producer.acks"),
        (f"{validation.paths[flow['name']]}.properties['producer.override.acks']",
         flow["properties"], "producer.override.acks"),
    )  # fmt: skip
    for where, properties, key in layers:
        if str(properties.get(key, "all")) not in ("all", "-1"):
            validation.warn(
                f"{where}: records are lost when a broker of '{flow['target']}' fails; remove it"
            )
