"""What mirror_accept lists: dangers and advisories that exist, of what exists."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..inventory import Inventory
from ..keys import suggestion
from ..schema import ACCEPTANCES


def judge_accept(found: Inventory, accept: Any) -> None:
    """Take over ``mirror_accept``, if it is a list of names."""
    if accept is None:
        return
    if not isinstance(accept, list) or not all(isinstance(entry, str) for entry in accept):
        found.refuse("mirror_accept: must be a list of names, such as [CVE-2026-35554]")
        return
    found.accept = accept


def judge_acceptances(found: Inventory, cves: set[str], instances: Any) -> None:
    """Refuse entries that accept nothing.

    :param cves: the advisories there are.
    :param instances: ``mirrormaker_instances``, whatever its shape.
    """
    members: dict[str, Iterable[Any]] = {
        "flow": found.named,
        "instance": instances if isinstance(instances, Mapping) else (),
        "cluster": found.clusters,
    }
    for entry in found.accept:
        danger, colon, name = entry.partition(":")
        if not colon:
            if entry not in cves:
                known = cves | {f"{key}:<{kind}>" for key, kind in ACCEPTANCES.items()}
                found.refuse(f"mirror_accept: unknown entry '{entry}'; {suggestion(entry, known)}")
        elif danger not in ACCEPTANCES:
            found.refuse(
                f"mirror_accept: unknown danger '{danger}' in '{entry}'; "
                f"{suggestion(danger, ACCEPTANCES)}"
            )
        elif name not in members[ACCEPTANCES[danger]]:
            kind = ACCEPTANCES[danger]
            found.refuse(
                f"mirror_accept: '{entry}' names no {kind}; {suggestion(name, members[kind])}"
            )
