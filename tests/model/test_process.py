"""One process in two layouts: the host's, and a made-up one."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from mirror_model.layout import HOST, Layout, Placed
from mirror_model.process import Process, Runtime

from tests.model.conftest import Site

ELSEWHERE = Layout(
    configuration="/mirror/configuration",
    credentials="/mirror/secrets",
    runtime="/mirror/made",
    logs="/mirror/logs",
    scratch="/mirror/scratch",
    variable="$({name})",
)
RUNTIME = Runtime(
    kafka="/kafka", java="/java", options=["-Da=b"], environment={"KAFKA_HEAP_OPTS": "-Xmx7m"}
)
HOSTS = re.compile(r"/(?:etc|run|var)/|\.service\b")
PLACE = re.compile(r"(?<!\$)\{(?:configuration|credentials|runtime|logs|scratch)\}")


@pytest.fixture(params=["mm1", "mm2", "mm2-connect"])
def process(request: pytest.FixtureRequest) -> Process:
    fixture = {"mm1": "site", "mm2": "mm2_site", "mm2-connect": "connect_site"}[request.param]
    site: Site = request.getfixturevalue(fixture)
    name = "connect-west" if request.param == "mm2-connect" else "mirrormaker"
    process = site.model.process(name, {"name": "mirror1"})
    assert process.engine == request.param
    return process


def everything(process: Process, layout: Layout) -> str:
    return json.dumps([
        process.files(layout), process.command(layout, RUNTIME),
        process.variables(layout, RUNTIME),
    ])  # fmt: skip


def test_a_process_knows_no_path_of_a_host(process: Process) -> None:
    assert not HOSTS.search(everything(process, ELSEWHERE))
    assert not HOSTS.search(repr(process))


@pytest.mark.parametrize("layout", [HOST, ELSEWHERE])
def test_a_layout_puts_a_path_for_every_place(process: Process, layout: Layout) -> None:
    assert not PLACE.search(everything(process, layout))


def test_no_process_but_a_worker_s_refuses_to_resolve_references(process: Process) -> None:
    """Clients whose own properties name providers do not start with that option."""
    refuses = "automatic.config.providers" in everything(process, HOST)
    assert refuses == (process.engine == "mm2-connect")


def test_layouts_differ_in_paths_alone(process: Process) -> None:
    paths = {
        getattr(HOST, field.name).replace("{name}", process.name): getattr(ELSEWHERE, field.name)
        for field in dataclasses.fields(Layout)
        if field.name != "variable"
    }
    text = everything(process, HOST)
    for path, elsewhere in sorted(paths.items(), reverse=True):
        text = text.replace(path, elsewhere)
    assert re.sub(r"\$\{([A-Z_]+)\}", r"$(\1)", text) == everything(process, ELSEWHERE)


def test_every_argument_is_a_variable_of_the_environment(process: Process) -> None:
    assert process.arguments
    assert {variable for _, variable in process.arguments} <= set(process.environment)
    _, *arguments = process.command(ELSEWHERE, RUNTIME)
    assert all(re.fullmatch(r"(--\S+ )?\$\([A-Z_]+\)", each) for each in arguments)


def test_what_a_site_adds_to_the_environment_wins(process: Process) -> None:
    variables = process.variables(HOST, RUNTIME)
    assert variables["KAFKA_HEAP_OPTS"] == "-Xmx7m"
    assert variables["KAFKA_OPTS"].split()[0] == "-Da=b"


def test_text_that_somebody_typed_names_no_place() -> None:
    typed = "{credentials}/x"
    assert HOST.put("a", [typed, {"b": typed}, 1]) == [typed, {"b": typed}, 1]
    assert HOST.put("a", [Placed(typed)]) == ["/run/credentials/a.service/x"]


def test_a_typed_property_stays_as_it_is(site: Site) -> None:
    site.instance["consumer_properties"] = {"client.id": "{configuration}"}
    (text,) = [
        text for path, text in site.model.process("mirrormaker", {}).files(HOST).items()
        if path.endswith("/consumer.properties")
    ]  # fmt: skip
    assert "client.id={configuration}\n" in text


def test_no_secret_is_printed_with_a_process(process: Process) -> None:
    assert "CANARY" in str(process.credentials)
    assert "CANARY" not in repr(process)
    assert not [file for file in process.secrets if file.endswith(".password")]


def test_a_process_is_made_once_for_each_of_its_nodes(mm2_site: Site) -> None:
    model = mm2_site.model
    one, other = ({"brokers": number} for number in (1, 2))
    assert model.process("mirrormaker", one) is model.process("mirrormaker", dict(one))
    assert model.process("mirrormaker", one) != model.process("mirrormaker", other)
