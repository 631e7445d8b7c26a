"""Write what documents derive from code.

docs/variables.md comes from the roles' argument specifications and the model's schema, the README
of each role from its specifications, its modules and its example (meta/example.yml), the JSON
Schema of the report's documents from the records of mirror_report, and one table each of
docs/report/findings.md and docs/report/outputs.md from its verdict table and its metrics.

Run without arguments to write them; tests fail when a file in the tree differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "roles/mirror_model/module_utils"))
sys.path.insert(0, str(ROOT / "spark/src"))
sys.path.insert(0, str(ROOT / "docs"))

import report_schema  # noqa: E402 (the path above comes first)
from mirror_model import engines, schema, tuned  # noqa: E402
from mirror_model.connectors import settings as mm2  # noqa: E402
from mirror_model.engines import mm1  # noqa: E402
from mirror_model.keys import Key  # noqa: E402
from mirror_report.checks.kinds import TABLE  # noqa: E402
from mirror_report.render import SCHEMA_VERSION, prometheus  # noqa: E402

DISTANCES_MS = (10, 50, 150)
DEFAULT_MBIT = next(key.default for key in schema.DISTANCE if key.name == "bandwidth_mbit")

ROLES = sorted(path.parents[1] for path in (ROOT / "roles").glob("*/meta/main.yml"))
PAGE = ROOT / "docs/variables.md"
REPORT = ROOT / "docs/report"

SITE = frozenset(
    ("kafka_clusters", "mirror_flows", "mirrormaker_instances", "kafka_connect_clusters",
     "mirror_accept")
)  # fmt: skip

HEAD = """\
<!-- Written by docs/generate.py; edit the argument specifications or the schema instead. -->
# Variables

What is mirrored is written once for the whole site, in five variables that every role reads:
`kafka_clusters`, `mirror_flows`, `mirrormaker_instances`, `kafka_connect_clusters` and
`mirror_accept`. Everything else says how a host does it and is prefixed by its role.
Unknown keys are refused, at every level, with the nearest known one.
"""

LAYERS = """\
### Which value wins

A property may be set in several places. The lower row wins; `null` removes what the rows above it
set. Connections, security, group, start and topics are written from the model and refused here.

| Layer | Where | Written as (engine mm1) |
|---|---|---|
| tuned default | below | |
| derived from the model | `kafka_clusters`, `mirror_flows` | |
| cluster | `kafka_clusters.<alias>.properties` | Kafka's name; consumer: source, producer: target |
| flow | `mirror_flows[].properties` | `consumer.` or `producer.` and Kafka's name |
| instance | `consumer_properties`, `producer_properties` | Kafka's name |

Engine mm2 has one file, in which each layer has its prefix:

| Written as | Rendered as |
|---|---|
| a security key in `kafka_clusters.<alias>.properties` | `<alias>.<key>` |
| another key there | `<alias>.<client>.<key>` for each client that knows it |
| `consumer.<key>` in `mirror_flows[].properties` | `<source>.consumer.<key>` |
| `producer.override.<key>` or another key there | `<source>-><target>.<key>` |
| a REST, plug-in or `replication.policy.` key in `worker_properties` | `<key>` |
| another key there, such as `producer.<key>` | `<target>.<key>` |

MirrorMaker 2 ignores a key under a wrong prefix without a word, so the model owns every prefix and
refuses every key that the instance's release does not know in its place. For engine mm2, a flow's
`producer.override.<name>` tunes the producer of its records, and `producer.<name>` in
`worker_properties` that of all flows. Replication factors that nobody sets are 3, or the number of
the target's brokers if that is less. Plug-ins need a manifest to be found; with
`plugin.discovery: hybrid_warn` in `worker_properties` others are found too, some seconds later.
"""

PATTERNS = """\
### Topic patterns

An entry of `topics` or `topics_exclude` that is a legal topic name (letters, digits, `.`, `_`, `-`)
means exactly that topic. Anything else is a regular expression over whole names, in the subset that
Java and Python read alike: literals, `.`, classes such as `[a-z_]`, `\\d`, `\\w`, `(...)`,
`(?:...)`, `|`, `*` `+` `?` and `{n}`. Refused are the comma (MirrorMaker 1 turns it into `|`),
lookaround, flags, back-references, named groups, lazy and possessive quantifiers. MirrorMaker 1
gets one expression: the entries joined by `|`, behind a negative lookahead if some are excluded.
A flow with patterns also leaves out [topics that steer a mirror](security.md#names-of-topics) and
names that would become too long.
MirrorMaker 2 gets the lists, and leaves out by itself Kafka's and its own internal topics and
what came from the target. `consumer_groups` are written in the same way.
"""


def cell(text: object) -> str:
    """Text that does not end a table cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


def code(value: Any) -> str:
    """A default as YAML would show it, in code marks."""
    if value is None:
        return ""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return f"`{cell(text)}`"


def prose(text: Any) -> str:
    """A description in Markdown instead of Ansible's markup."""
    joined = " ".join(text) if isinstance(text, list) else str(text or "")
    for mark in ("C(", "V(", "O("):
        while mark in joined:
            before, _, rest = joined.partition(mark)
            inner, _, after = rest.partition(")")
            joined = f"{before}`{inner}`{after}"
    return cell(joined)


def keys_table(keys: tuple[Key, ...]) -> list[str]:
    """One table of the schema's keys."""
    lines = ["| Key | Value | Default | Meaning |", "|---|---|---|---|"]
    kinds = {
        "text": "text", "secret": "text, secret", "whole": "number", "texts": "list of text",
        "properties": "map", "map": "map",
    }  # fmt: skip
    for key in keys:
        value = " ".join(f"`{c}`" for c in key.choices) if key.choices else kinds[key.kind]
        default = "required" if key.required else code(key.default)
        doc = cell(key.doc)
        if key.engines:
            doc += f" Engines: {', '.join(key.engines)}."
        lines.append(f"| `{key.name}` | {value} | {default} | {doc} |")
    return [*lines, ""]


def properties_table(properties: dict[str, Any]) -> list[str]:
    """One table of tuned defaults."""
    lines = ["| Property | Default |", "|---|---|"]
    lines += [f"| `{name}` | {code(value)} |" for name, value in sorted(properties.items())]
    return [*lines, ""]


def distances_table(properties: Callable[[tuned.Distance], dict[str, Any]]) -> list[str]:
    """One table of tuned defaults that follow from how far a cluster is."""
    far = [tuned.Distance(trip, DEFAULT_MBIT) for trip in DISTANCES_MS]
    columns = [properties(tuned.NEAR), *map(properties, far)]
    titles = ["near", *(f"{distance.round_trip_ms} ms" for distance in far)]
    lines = [f"| Property | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for name in sorted(set().union(*columns)):
        values = [code(column[name]) if name in column else "Kafka's own" for column in columns]
        lines.append(f"| `{name}` | {' | '.join(values)} |")
    return [*lines, ""]


def model_pages() -> list[str]:
    """The five variables of the site; far clusters with the default bandwidth."""
    flags = ", ".join(engines.ENGINES)
    lines = ["## The site", "", "### kafka_clusters", ""]
    lines += ["A map of alias to cluster. An alias is made of letters, digits, `_` and `-`.", ""]
    lines += keys_table(schema.CLUSTER)
    lines += ["An identity (`kafka_clusters.<alias>.identities.<name>`):", ""]
    lines += keys_table(schema.IDENTITY)
    lines += ["### mirror_flows", "", f"A list. Engines of this version: {flags}.", ""]
    lines += keys_table(engines.flow_keys())
    lines += [*PATTERNS.splitlines(), "", "### mirrormaker_instances", ""]
    lines += ["A map of name to instance. The name is that of the unit, the directory below `/etc`"]
    lines += ["and the user: `mirrormaker` or `mirrormaker-<small letters and digits>`, at most"]
    lines += [f"{schema.LONGEST_OWNER_NAME} characters.", ""]
    lines += keys_table(engines.instance_keys())
    lines += ["A distance (`mirrormaker_instances.<name>.distance.<alias>`):", ""]
    lines += keys_table(schema.DISTANCE)
    lines += ["Keys of `mm1_options`:", "", "| Option | Default | Meaning |", "|---|---|---|"]
    for name, (value, doc) in mm1.OPTIONS.items():
        lines.append(f"| `{name}` | {code(value)} | {doc} |")
    lines += ["", *LAYERS.splitlines(), "", "Tuned defaults of the consumers of both engines:", ""]
    lines += distances_table(tuned.consumer)
    lines += ["Tuned defaults of the producers of both engines; MirrorMaker 2 has one per task,"]
    lines += ["which buffers half of this `buffer.memory`, but not less than near:", ""]
    lines += distances_table(tuned.producer)
    lines += ["Further tuned defaults of the consumer of engine mm1:", ""]
    lines += properties_table(mm1.CONSUMER_DEFAULTS)
    for title, properties in (
        ("workers of engine mm2 (`<target>.`)", mm2.WORKER_DEFAULTS),
        ("flows of engine mm2 (`<source>-><target>.`)", mm2.FLOW_DEFAULTS),
    ):
        lines += [f"Tuned defaults of the {title}:", ""]
        lines += properties_table(properties)
    lines += [
        "and `sync.topic.configs.enabled: false` for flows that keep names and have a pattern"
    ]
    lines += ["among their `topics` ([why](security.md#names-of-topics)).", ""]
    lines += ["### kafka_connect_clusters", ""]
    lines += ["A map of name to Connect cluster, named as an instance is.", ""]
    for title, keys in (
        ("", schema.CONNECT_CLUSTER),
        ("`rest`", schema.CONNECT_REST),
        ("`secrets`", schema.CONNECT_SECRETS),
        ("`topics`", schema.CONNECT_TOPICS),
        ("A distance (`distance.<alias>`)", schema.DISTANCE),
    ):
        lines += [f"{title}:", ""] if title else []
        lines += keys_table(keys)
    lines += ["### mirror_accept", "", "Dangers accepted by name; unknown entries are refused.", ""]
    lines += [f"- `{name}:<{kind}>`" for name, kind in schema.ACCEPTANCES.items()]
    lines += ["- the CVE names of `files/advisories.yml`", ""]
    return lines


def option_rows(name: str, option: dict[str, Any]) -> list[str]:
    """A variable of a role, and below it the keys of its values."""
    default = "required" if option.get("required") else code(option.get("default"))
    kind = option.get("type", "str")
    elements = option.get("elements")
    if elements:
        kind += f" of {elements}"
    rows = [f"| `{name}` | {kind} | {default} | {prose(option.get('description'))} |"]
    for key, inner in (option.get("options") or {}).items():
        rows += option_rows(f"{name}{'[]' if elements else ''}.{key}", inner)
    return rows


def specs_of(role: Path) -> dict[str, Any]:
    """Entry points of a role and what they take; a role of plug-ins alone has none."""
    file = role / "meta/argument_specs.yml"
    text = file.read_text(encoding="utf-8") if file.exists() else "argument_specs: {}"
    specs: dict[str, Any] = yaml.safe_load(text)["argument_specs"]
    return specs


def role_page(role: Path) -> list[str]:
    """The variables of one role, those of the site left out."""
    return [f"## Role {role.name}", "", *entry_points(role)]


def entry_points(role: Path) -> list[str]:
    """A title for each entry point of a role, and a table of its variables."""
    specs = specs_of(role)
    lines: list[str] = []
    seen: set[str] = set()
    for entry, spec in specs.items():
        own = {
            name: option
            for name, option in (spec.get("options") or {}).items()
            if name not in seen | SITE and (entry == "main" or name.startswith(role.name))
        }
        seen |= set(own)
        if entry != "main" and not own:
            continue
        title = prose(spec.get("short_description", ""))
        lines += [f"{title}." if entry == "main" else f"Entry point `{entry}`: {title}.", ""]
        if not own:
            continue
        lines += ["| Variable | Type | Default | Meaning |", "|---|---|---|---|"]
        lines += [row for name, option in own.items() for row in option_rows(name, option)]
        lines.append("")
    return lines


def page() -> str:
    """The whole page."""
    lines = [*HEAD.splitlines(), "", *model_pages()]
    for role in ROLES:
        if specs_of(role):
            lines += role_page(role)
    return "\n".join(lines).rstrip("\n") + "\n"


def modules_of(role: Path) -> list[str]:
    """The modules of a role, with what each does."""
    lines = []
    for file in sorted(role.glob("library/*.py")):
        text = file.read_text(encoding="utf-8").partition('DOCUMENTATION = r"""')[2]
        found = yaml.safe_load(text.partition('"""')[0])
        lines.append(f"| `{found['module']}` | {prose(found['short_description'])} |")
    return ["## Modules", "", "| Module | What it does |", "|---|---|", *lines, ""] if lines else []


def readme(role: Path) -> str:
    """The README of a role: what it does, an example, its variables and modules."""
    about = yaml.safe_load((role / "meta/main.yml").read_text(encoding="utf-8"))
    needs = [entry["role"] for entry in about["dependencies"]]
    lines = ["<!-- Written by docs/generate.py. -->", f"# Role {role.name}", ""]
    lines += [f"{prose(about['galaxy_info']['description'])}.", ""]
    specs = specs_of(role)
    if "main" in specs and (said := specs["main"].get("description")):
        lines += [prose(said), ""]
    if needs:
        lines += [f"It needs {', '.join(f'[{name}](../{name}/README.md)' for name in needs)}.", ""]
    if (example := role / "meta/example.yml").exists():
        text = example.read_text(encoding="utf-8").removeprefix("---\n").rstrip()
        lines += ["## Example", "", "```yaml", text, "```", ""]
    if "site" in specs or "mirror_model" in needs:
        lines += [
            "It reads the site's own variables, too: `kafka_clusters`, `mirror_flows` and the "
            "others of [the site](../../docs/variables.md#the-site).", "",
        ]  # fmt: skip
    if specs:
        lines += ["## Variables", "", *entry_points(role)]
    return "\n".join([*lines, *modules_of(role)]).rstrip("\n") + "\n"


def findings_table() -> list[str]:
    """Every kind of finding."""
    rows = [
        f"| `{name}` | {kind.severity} | {cell(kind.meaning)} | {cell(kind.cure)} |"
        for name, kind in TABLE.items()
    ]
    return ["| Finding | Severity | What it says | What to do |", "|---|---|---|---|", *rows]


def metrics_table() -> list[str]:
    """Every metric."""
    rows = [
        f"| `{name}` | {cell(labels)} | {cell(text)} |"
        for name, (labels, text) in prometheus.METRICS.items()
    ]
    return ["| Metric | Labels | What it is |", "|---|---|---|", *rows]


def report_pages() -> dict[Path, str]:
    """Pages of docs/report with a derived table, each between two marks."""
    pages = {}
    for file, name, lines in (
        ("findings.md", "findings", findings_table()),
        ("outputs.md", "metrics", metrics_table()),
    ):
        first, last = f"<!-- {name}: written by docs/generate.py -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = (REPORT / file).read_text(encoding="utf-8").partition(first)
        _, ended, after = rest.partition(last)
        if not (found and ended):
            raise SystemExit(f"{REPORT / file}: the marks of {name} are missing")
        pages[REPORT / file] = before + found + "\n".join(lines) + "\n" + last + after
    return pages


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    report_schema.PACKAGED.write_text(report_schema.text(SCHEMA_VERSION), encoding="utf-8")
    for path, text in report_pages().items():
        path.write_text(text, encoding="utf-8")
    for directory in ROLES:
        (directory / "README.md").write_text(readme(directory), encoding="utf-8")
