"""Environment files as systemd reads them, compared with the model."""

import re
from collections.abc import Iterator

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding

_LINE = re.compile(r"^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)$")


def read_environment(text: str) -> dict[str, str]:
    r"""Variables of an environment file.

    Understands what the product writes: one ``KEY="value"`` per line, with ``\"``, ``\\``, ``\$``
    and ``\``` escaped, besides single quotes and bare words of a hand edit.

    Format: ``systemd.exec(5)``, EnvironmentFile=.
    """
    variables: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or line.lstrip().startswith(("#", ";")):
            continue
        name, raw = match[1], match[2].strip()
        if len(raw) >= 2 and raw[0] == raw[-1] == '"':
            variables[name] = re.sub(r'\\(["\\$`])', r"\1", raw[1:-1])
        elif len(raw) >= 2 and raw[0] == raw[-1] == "'":
            variables[name] = raw[1:-1]
        else:
            variables[name] = re.sub(r"\\(.)", r"\1", raw)
    return variables


def drift(flow: Flow, text: str) -> Iterator[Finding]:
    """A mirror that was started with other topics than the flow's.

    :param text: its environment file; empty: there is none.
    """
    include = read_environment(text).get("MM_INCLUDE")
    if include not in (None, flow.include):
        yield finding(
            "sysconfig_drift",
            f"{flow.sysconfig} mirrors {include}, the model says {flow.include}",
            "Run playbooks/mirrormaker.yml to return to the model, or change topics of flow "
            f"{flow.name}",
            flow=flow.name,
        )
