"""What role kafka_as writes: connections and credentials of the identities that are named."""

from __future__ import annotations

import re
from typing import Any

import pytest
from mirror_model.keys import ModelError
from mirror_model.operators import operator_files
from mirror_model.render import to_java_properties
from mirror_model.site import Site, mirror_site

from tests.kafka_as.installed import program
from tests.model.conftest import SITE


def site(clusters: dict[str, Any]) -> Site:
    return mirror_site(clusters, [], {}, {})


def test_only_named_identities_are_written() -> None:
    files = operator_files(site(SITE["clusters"]), {"east": ["report"], "west": []}, "/c")
    assert list(files["properties"]) == ["east.report.properties", "west.properties"]
    assert set(files["credentials"]) == {"east.report.jaas", "east.report.ca.pem"}
    assert "CANARY" not in str(files["properties"])
    text = to_java_properties(files["properties"]["east.report.properties"])
    assert "config.providers.dir.param.allowed.paths=/c\n" in text
    assert program.REFERENCE.findall(text) == [
        ("/c", "east.report.jaas"),
        ("/c", "east.report.ca.pem"),
    ]


def test_properties_of_the_cluster_reach_scripts_as_far_as_they_are_for_all() -> None:
    own = {"ssl.protocol": "TLSv1.3", "request.timeout.ms": 9, "acks": 1, "my.plugin": "x"}
    clusters = {**SITE["clusters"], "west": {**SITE["clusters"]["west"], "properties": own}}
    properties = operator_files(site(clusters), {"west": []}, "/c")["properties"]["west.properties"]
    assert {name: properties.get(name) for name in own} == {**own, "acks": None}


@pytest.mark.parametrize(
    ("identities", "words"),
    [
        ({"eastt": ["mirror"]}, "did you mean 'east'?"),
        ({"east": ["admin"]}, "kafka_as_identities.east: 'admin' is no identity"),
        ({"east": "mirror"}, "must be a list"),
        ({"east": []}, "known: mirror, report"),
        ({"west": ["mirror"]}, "none is defined"),
    ],
)
def test_nothing_stands_in_for_an_identity_that_is_not_defined(
    identities: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=re.escape(words)):
        operator_files(site(SITE["clusters"]), identities, "/c")


def test_a_reference_to_a_credential_of_a_service_is_refused() -> None:
    own = {"ssl.truststore.password": "${dir:/run/credentials/mirrormaker.service:x}"}
    clusters = {**SITE["clusters"], "west": {**SITE["clusters"]["west"], "properties": own}}
    with pytest.raises(ModelError, match="no operator has"):
        operator_files(site(clusters), {"west": []}, "/c")
