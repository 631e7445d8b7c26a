"""Whatever stands in the place of a value: validation refuses it by a message, and never raises."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.model.conftest import Site

VARIABLES = ("clusters", "flows", "instances", "connect_clusters", "accept")
MISSING = object()
SHAPES = [None, [], {}, 3, "x", [[]], {"a": {}}, [None], True, MISSING]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Keys and indexes that lead to each value below this one."""
    pairs: Any = value.items() if isinstance(value, dict) else ()
    for key, below in enumerate(value) if isinstance(value, list) else pairs:
        yield (*at, key)
        yield from places(below, (*at, key))


def put(site: Site, place: tuple[Any, ...], shape: Any) -> Site:
    """A copy of a site with another value at one place."""
    changed = copy.deepcopy(site)
    *above, last = place
    parent: Any = changed
    for key in above:
        parent = parent[key]
    if shape is MISSING:
        del parent[last]
    else:
        parent[last] = copy.deepcopy(shape)
    return changed


@pytest.mark.parametrize("fixture", ["site", "mm2_site", "connect_site"])
def test_no_value_of_a_wrong_shape_ends_validation(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    site: Site = request.getfixturevalue(fixture)
    refused = 0
    for variable in VARIABLES:
        for place in [(variable,), *places(site[variable], (variable,))]:
            for shape in SHAPES:
                if (place, shape) != ((variable,), MISSING):
                    refused += bool(put(site, place, shape).findings()["errors"])
    assert refused > 100
