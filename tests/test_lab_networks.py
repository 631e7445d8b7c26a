"""Labs that run at once have networks of their own."""

from __future__ import annotations

import hashlib

import jinja2
import yaml

from tests.loading import ROOT

INVENTORIES = (
    *ROOT.glob("molecule/*/inventory/group_vars/all.yml"),
    *ROOT.glob("inventories/*/group_vars/all.yml"),
)


def test_no_two_labs_have_the_same_network() -> None:
    """Its number is made of the lab's name, and another name may make the same."""
    (play,) = yaml.safe_load((ROOT / "lab/create.yml").read_text(encoding="utf-8"))
    environment = jinja2.Environment(autoescape=False)  # noqa: S701 — no page is made
    environment.filters["hash"] = lambda text, kind: hashlib.new(kind, text.encode()).hexdigest()
    number = environment.from_string(play["vars"]["lab_network_number"])
    prefixes = {
        variables["lab_prefix"]
        for path in INVENTORIES
        if "lab_prefix" in (variables := yaml.safe_load(path.read_text(encoding="utf-8")))
    }
    taken = {prefix: number.render(lab_prefix=prefix) for prefix in prefixes}
    assert len(taken) > 7
    assert len(set(taken.values())) == len(taken), taken
