"""What an inventory is refused for: one case per test, and every message has a cure."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mirror_model import schema

from tests.model.conftest import Site


def test_a_sound_site_passes_without_a_word(site: Site) -> None:
    assert site.validate() == {"errors": [], "warnings": []}


def test_an_empty_site_passes() -> None:
    empty = Site(
        clusters={}, flows=[], instances={}, connect_clusters={}, accept=[],
        hosts=["a"], groups={},
    )  # fmt: skip
    assert empty.validate() == {"errors": [], "warnings": []}


def test_all_problems_are_reported_at_once(site: Site) -> None:
    site.flow["source"] = "eest"
    site.instance["hosts"] = ["mirrror1"]
    site["accept"] = ["CVE-1"]
    assert len(site.validate()["errors"]) == 3


@pytest.mark.parametrize("name", ["clusters", "flows", "instances", "connect_clusters", "accept"])
@pytest.mark.parametrize("value", ["CANARY text", 7, ["CANARY"], {"CANARY": "CANARY"}, None])
def test_nonsense_is_refused_without_a_crash_or_a_secret(site: Site, name: str, value: Any) -> None:
    site[name] = value
    site.validate()


@pytest.mark.parametrize("value", ["CANARY", 7, ["CANARY"], {"a": {"CANARY": 1}}, None, True, [[]]])
def test_nonsense_in_any_key_is_refused_without_a_crash(site: Site, value: Any) -> None:
    places = [
        (site["clusters"]["east"], schema.CLUSTER),
        (site["clusters"]["east"]["identities"]["mirror"], schema.IDENTITY),
        (site.flow, schema.FLOW),
        (site.instance, schema.INSTANCE),
    ]
    for place, keys in places:
        for key in keys:
            before = copy.deepcopy(place)
            place[key.name] = value
            found = site.validate()
            if key.kind == "secret":
                assert "CANARY" not in str(found)
            place.clear()
            place.update(before)
