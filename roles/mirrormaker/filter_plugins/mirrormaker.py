"""Filters about one instance: its files, what is known of its clusters, and what is said of it."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

# Files that an engine or a release of Kafka needs, and another does not.
ENGINES_FILES = (
    "consumer.properties", "producer.properties", "mm2.properties", "log4j.properties",
    "log4j2.yaml", "rest.jaas.conf", "worker-secrets.sh",
)  # fmt: skip


def mirrormaker_files(
    paths: Mapping[str, str], rendered: Iterable[str], scripts: Iterable[str]
) -> dict[str, list[str]]:
    """Paths of the files of an instance that hold no secret.

    :param paths: as filter ``mirror_paths`` returns them.
    :param rendered: paths of properties, and of texts of the model.
    :param scripts: names of scripts that run before the process.
    :returns: ``started``, those that the process is started with, the unit last; ``former``, what
        another engine or release needed; ``kept``, what a copy of it all has to hold.
    """
    directory, made = paths["directory"], set(rendered)
    properties = {path for path in made if path.endswith(".properties")}
    texts = (made - properties) | {f"{directory}/{name}" for name in scripts}
    own = [*sorted(properties), *sorted(texts), paths["logging"]]
    started = [*own, paths["sysconfig"], paths["unit"]]
    former = [f"{directory}/{name}" for name in ENGINES_FILES if f"{directory}/{name}" not in own]
    remembered = [f"{directory}/generations.json", f"{directory}/identity.json"]
    return {"started": started, "former": former, "kept": [*remembered, *former, *started]}


def mirrormaker_contents(
    paths: Mapping[str, str],
    started: Iterable[str],
    rendered: Mapping[str, str],
    texts: Mapping[str, Any],
    group: str,
) -> dict[str, dict[str, str]]:
    """The files of an instance that hold no secret, in the order in which they are written.

    :param paths: as filter ``mirror_paths`` returns them.
    :param started: as of :func:`mirrormaker_files`.
    :param rendered: path to text: properties, and texts of the model.
    :param texts: ``header`` of properties, ``identity``, ``logging``, ``scripts`` (name to text),
        ``sysconfig`` and ``unit``.
    :param group: that reads them.
    :returns: path to ``content``, ``group`` and ``mode``, as module ``deployed_files`` takes them.
    """
    directory = paths["directory"]
    contents = {
        **rendered,
        **{f"{directory}/{name}": text for name, text in texts["scripts"].items()},
        **{paths[name]: texts[name] for name in ("logging", "sysconfig", "unit")},
    }
    for_all = (paths["sysconfig"], paths["unit"])
    return {
        f"{directory}/identity.json": {"content": texts["identity"]},
        **{
            path: {"content": (texts["header"] if path in rendered and path.endswith(".properties")
                               else "") + contents[path]}
            | ({} if path in for_all else {"group": group, "mode": "0640"})
            for path in started
        },
    }  # fmt: skip


def mirrormaker_ownership(state: Mapping[str, Any], release: str) -> dict[str, Any]:
    """What the removal of an instance has to know.

    :param state: as module ``service_unit_state`` returns it.
    :param release: of Kafka, from which it runs now.
    :returns: ``owner``; ``created_user``, whether the role made its user; ``releases``, those that
        it ever ran from.
    """
    remembered = state["directory"]["ownership"] or {}
    return {
        "owner": "role mirrormaker",
        "created_user": not state["user_exists"],
        **remembered,
        "releases": sorted({*remembered.get("releases", ()), release}),
    }


def mirrormaker_foreign(state: Mapping[str, Any], paths: Mapping[str, str]) -> list[str]:
    """Paths of an instance that somebody else has made.

    :param state: as module ``service_unit_state`` returns it.
    :param paths: as filter ``mirror_paths`` returns them.
    """
    directory, unit = state["directory"], state["unit_file"]
    occupied = directory["exists"] and not directory["empty"] and directory["ownership"] is None
    foreign = ((paths["directory"], occupied), (paths["unit"], unit["exists"] and not unit["ours"]))
    return [path for path, is_foreign in foreign if is_foreign]


def mirrormaker_document(checked: Mapping[str, Any]) -> dict[str, Any]:
    """What a check of the clusters said; nothing where it said nothing that can be read.

    :param checked: as a task registered it, or nothing.
    """
    text = str(checked.get("stdout") or "").lstrip()
    document: dict[str, Any] = json.loads(text) if text.startswith("{") else {}
    return document


def mirrormaker_check(
    checked: Mapping[str, Any],
    document: Mapping[str, Any],
    collisions: Iterable[Mapping[str, Any]],
    mended: Collection[str],
) -> dict[str, list[str]]:
    """What stops a run, and what is only said, of a check of the clusters.

    :param checked: as a task registered it.
    :param document: what it said.
    :param collisions: findings about topics that are left out from now on.
    :param mended: kinds of findings that the run mends itself.
    :returns: ``errors`` and ``failures`` (findings, and what to say of them) and ``warnings``.
    """
    findings, left_out = list(document.get("findings") or ()), list(collisions)
    warned = [each for each in findings if each["severity"] == "warning" or each["kind"] in mended]
    errors = [
        each
        for each in findings
        if each["severity"] in ("critical", "unknown")
        and each not in left_out
        and each["kind"] not in mended
    ]
    ended = (
        f"The check of the clusters ended with status {checked.get('rc', 'none')}: "
        f"{checked.get('stderr', '')}"
    )
    return {
        "errors": errors,
        "failures": [f"{each['message']}. {each['action']}" for each in errors] or [ended],
        "warnings": [
            *(each["message"] for each in warned),
            *(f"{each['message']}. It is left out until it is gone" for each in left_out),
        ],
    }


def mirrormaker_outcome(
    back: Mapping[str, Any], checking: bool, state: str, problem: str, answer: Mapping[str, Any]
) -> str:
    """What became of a host whose new configuration was not confirmed.

    :param back: what module ``mirrormaker_last_good`` answered.
    :param checking: check mode.
    :param state: that the inventory wants.
    :param problem: why the configuration that is back did not start; empty: it did.
    :param answer: ``problem`` (empty: none), ``works`` (a verb) and ``said`` of the process that
        runs with it.
    """
    if checking:
        return "Nothing was changed."
    if not back.get("present"):
        return (
            "No configuration was confirmed on this host before, so there is none to go back to: "
            "correct the cause and run the play again."
        )
    if not back["restored"]:
        return (
            "Its configuration is the one that was confirmed last, so there is nothing to go back "
            "to."
        )
    said = ""
    if state == "started" and problem:
        said = f", and does not start: {problem}"
    elif state == "started":
        works = ", and is not confirmed either" if answer["problem"] else f" and {answer['works']}"
        words = answer["said"] or answer["problem"]
        said = works + (f" ({words})" if words else "")
    return (
        f"The configuration that was confirmed last is back{said}. Correct the cause, or take the "
        "last change of the inventory back, and run the play again."
    )


def mirrormaker_unit_said(lines: Iterable[str], name: str, failure: str) -> str:
    """What the units of a host say of one, unless a failure says that its process ended.

    :param lines: a line per unit.
    :param name: of the instance.
    :param failure: what is said already.
    """
    if "its process ended" in failure:
        return ""
    return " ".join(f"Its unit, {line}." for line in lines if line.startswith(f"{name}: "))


# Of MirrorMaker 2's own topics, where the target has as many brokers.
REPLICATION_FACTOR = 3


def mirrormaker_clusters(
    flows: Iterable[Mapping[str, Any]], names: Collection[str], remembered: Mapping[str, Any]
) -> dict[str, Any]:
    """What is known of an instance's clusters.

    :param flows: those of the check's document; empty before it has run.
    :param names: of the instance's flows.
    :param remembered: the identity that its host remembers; empty on a new host.
    :returns: ``source_ids``, alias to cluster id of the sources that were seen; ``target_id``;
        ``brokers``, by which replication factors are chosen: once, so those that the target had
        then, whichever it has now. ``None``: unknown.
    """
    own = [flow for flow in flows if flow["name"] in names]
    source_ids = {
        flow["source"]: flow["source_cluster_id"] for flow in own if flow["source_cluster_id"]
    }
    target_ids = (flow["target_cluster_id"] for flow in own if flow["target_cluster_id"])
    target_id = next(target_ids, remembered.get("target_cluster_id"))
    brokers = remembered.get("replication_factor")
    if not brokers or remembered.get("target_cluster_id") != target_id:
        brokers = next((flow["target_brokers"] for flow in own if flow["target_brokers"]), None)
    return {"source_ids": source_ids, "target_id": target_id, "brokers": brokers}


def mirrormaker_identity(
    identity: Mapping[str, Any], clusters: Mapping[str, Any], remembered: Mapping[str, Any]
) -> dict[str, Any]:
    """What must not change unnoticed.

    :param identity: what the model knows of it. Where it names one ``source``, there are no others;
        elsewhere the id of a source that is mirrored no more stays known until it is seen under
        another alias.
    :param clusters: as :func:`mirrormaker_clusters` returns them.
    :param remembered: the identity that its host remembers; empty on a new host.
    """
    source_ids, brokers = clusters["source_ids"], clusters["brokers"]
    if "source" in identity:
        source_id = next(iter(source_ids.values()), remembered.get("source_cluster_id"))
        sources: dict[str, Any] = {"source_cluster_id": source_id}
    else:
        former = remembered.get("source_cluster_ids") or {}
        kept = {alias: of for alias, of in former.items() if of not in source_ids.values()}
        sources = {
            "source_cluster_ids": kept | source_ids,
            "replication_factor": min(brokers, REPLICATION_FACTOR) if brokers else None,
        }
    return {**identity, "target_cluster_id": clusters["target_id"], **sources}


def mirrormaker_brokers(flows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many brokers clusters have, by alias, as far as a check saw it.

    :param flows: those of the check's document.
    """
    return {
        flow[side]: flow[f"{side}_brokers"]
        for flow in flows
        for side in ("source", "target")
        if flow[f"{side}_brokers"]
    }


def mirrormaker_said(answer: Mapping[str, Any]) -> str:
    """What a command of the report's client said, in one line, its last error if nothing else.

    :param answer: as a task registered it.
    """
    lines = str(answer.get("stderr") or "no answer").strip().splitlines()
    return str(answer.get("stdout") or "").strip() or lines[-1]


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {
            function.__name__: function
            for function in (
                mirrormaker_brokers, mirrormaker_check, mirrormaker_clusters,
                mirrormaker_contents, mirrormaker_document,
                mirrormaker_files, mirrormaker_foreign, mirrormaker_identity,
                mirrormaker_outcome, mirrormaker_ownership, mirrormaker_said,
                mirrormaker_unit_said,
            )
        }  # fmt: skip
