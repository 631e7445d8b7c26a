"""A Kafka release stays while a unit or a command names it, without role kafka knowing which."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.loading import ROOT

RELEASE = "/opt/kafka/releases/kafka_2.13-4.3.1"
(FIND, *_) = yaml.safe_load((ROOT / "roles/kafka/tasks/uninstall.yml").read_text())
SEARCH: dict[str, Any] = FIND["ansible.builtin.find"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/etc/kafka-as/site.json", f'    "bin": "{RELEASE}/bin",'),
        ("/etc/systemd/system/mirrormaker.service", f"ExecStart={RELEASE}/bin/x.sh \\"),
        ("/etc/systemd/system/mirrormaker.service.d/own.conf", f"ExecStart={RELEASE}/bin/x.sh"),
        ("/run/systemd/system/own.service", f"ExecStart={RELEASE}/bin/x.sh"),
        ("/usr/lib/systemd/system/own.service", f"ExecStart={RELEASE}/bin/x.sh"),
    ],
)
def test_a_file_that_names_the_release_is_found(path: str, line: str) -> None:
    assert SEARCH["recurse"]
    assert any(Path(path).is_relative_to(place) for place in SEARCH["paths"])
    assert any(fnmatch.fnmatch(Path(path).name, pattern) for pattern in SEARCH["patterns"])
    contains = SEARCH["contains"].replace(
        "{{ __kafka_release | regex_escape }}", re.escape(RELEASE)
    )
    assert re.match(contains, line)
    assert not re.match(contains, line.replace("4.3.1", "4.3.10"))


def test_kafka_as_says_in_such_a_file_what_it_runs() -> None:
    variables = yaml.safe_load((ROOT / "roles/kafka_as/vars/main.yml").read_text())
    assert variables["__kafka_as_home"] == "/etc/kafka-as"
    assert variables["__kafka_as_site"]["bin"].startswith("{{ kafka_release_prefix }}")
    tasks = (ROOT / "roles/kafka_as/tasks/configure.yml").read_text()
    assert '"{{ __kafka_as_home }}/site.json"' in tasks
