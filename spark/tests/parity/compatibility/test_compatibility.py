"""Commands answer what they answered, and a state directory of an earlier release is read on.

``goldens`` holds what an earlier release answered in each scenario, and the state directory it
left. A difference is a change for those who read documents or keep states. Where one is meant,
``MIRROR_WRITE_GOLDENS=1 pytest spark/tests/parity/compatibility`` writes them again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import golden_forms as forms
import pytest
from golden_scenarios import (
    FAULTS,
    Aligned,
    Compacted,
    Killed,
    MirrorMaker1,
    MirrorMaker2,
    Scenario,
    Sealed,
)
from golden_site import Site
from parity_clusters import World
from parity_commands import one_session
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report.state.store import start_again

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

GOLDENS = Path(__file__).parent / "goldens"
OLD_STATE = Path(__file__).parent / "fingerprint_1"
WRITING = bool(os.environ.get("MIRROR_WRITE_GOLDENS"))
SHOWN = 30
NO_REPORT = {"exit": 3, "document": None}

Answers = dict[str, Any]
"""Command, and when it ran -> its exit status and the form of its document; and other forms."""


class Played(NamedTuple):
    """What was answered: before the state was stored, and after it.

    :param expected: what was written down, likewise.
    :param fresh: by a host that played all of it; ``None``: none did.
    :param restored: by a host that took the stored state over.
    """

    expected: dict[str, Any]
    fresh: dict[str, Answers] | None
    restored: Answers


def begin(scenario: Scenario, site: Site | None) -> Answers:
    """Play a scenario up to where the state is stored; without a host, on the clusters alone."""
    answers: Answers = {}
    scenario.before()
    if site is not None:
        answers["baseline"] = site.call("baseline", *scenario.baseline)
    for step in scenario.steps():
        step()
        if site is None:
            continue
        if scenario.killed is not None:
            site.killed_run(*scenario.killed)
        else:
            answers["run"] = site.call("run", "--json")
    if site is not None:
        with scenario.mirror():
            for name, *options in scenario.commands():
                answers[name] = site.call(name, *options, "--json")
        if scenario.digests:
            answers |= site.digests()
        answers["state"] = site.form()
    return answers


def go_on(site: Site) -> Answers:
    """Run twice: with something new, and without."""
    return {
        "run": site.call("run", "--json"),
        "lag": site.call("lag", "--json"),
        "run again": site.call("run", "--json"),
        "metrics": site.form_of_metrics(),
        "state": site.form(),
    }


def play(scenario: Scenario, directory: Path, *, from_the_start: bool) -> Played:
    """Play a scenario with a host that takes the stored state over, and with a new one.

    :param from_the_start: otherwise there is no new one.
    """
    golden = GOLDENS / scenario.name
    fresh = Site(directory / "fresh", scenario) if from_the_start else None
    begun = begin(scenario, fresh)
    stored_at_ms = int(time.time() * 1000) if WRITING else load(golden)["stored_at_ms"]
    if WRITING and fresh is not None:
        shutil.rmtree(golden, ignore_errors=True)
        fresh.store(golden / "state")
    restored = Site(directory / "restored", scenario)
    restored.restore(golden / "state", stored_at_ms)
    sites = [site for site in (restored, fresh) if site is not None]
    shown = [site.call("show", "--json") for site in sites]
    scenario.later()
    went_on = [{"show": answer, **go_on(site)} for site, answer in zip(sites, shown, strict=True)]
    found = {"stored_at_ms": stored_at_ms, "begun": begun, "went on": went_on[-1]}
    if WRITING:
        save(golden, found)
    return Played(load(golden), found if fresh else None, went_on[0])


def save(golden: Path, found: dict[str, Any]) -> None:
    """Write down what was answered, but for what is said elsewhere, see :func:`load`."""
    plain = found | {
        "begun": {name: answer for name, answer in found["begun"].items() if name != "state"},
        "went on": {name: answer for name, answer in found["went on"].items() if name != "show"},
    }
    (golden / "answers.json").write_text(forms.written(plain))


def load(golden: Path) -> dict[str, Any]:
    """Read what was written down.

    The state is that which was stored, and what is shown of it is the report of the run before.
    """
    found: dict[str, Any] = forms.read((golden / "answers.json").read_text())
    found["begun"]["state"] = forms.of_state(golden / "state", {})
    found["went on"]["show"] = found["begun"].get("run", NO_REPORT)
    return found


def differences(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """Where two documents differ, and in what."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted(expected.keys() | found.keys()):
            if name not in found:
                yield f"{where}/{name} is gone"
            elif name not in expected:
                yield f"{where}/{name} is new"
            else:
                yield from differences(expected[name], found[name], f"{where}/{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, f"{where}[{number}]")
    elif expected != found:
        yield f"{where} was {expected!r} and is {found!r}"


def assert_same(expected: Answers, found: Answers) -> None:
    """Fail with the places that differ."""
    different = list(differences(expected, found))
    assert not different, "\n".join([f"{len(different)} differences:", *different[:SHOWN]])


KINDS = (MirrorMaker1, MirrorMaker2, Aligned, Compacted, Sealed, Killed)
FROM_THE_START = [
    pytest.param((kind, True), id=kind.name, marks=pytest.mark.long) for kind in KINDS
]
RESTORED = [
    pytest.param(
        (kind, False), id=f"{kind.name}, restored",
        marks=[] if kind is MirrorMaker2 else [pytest.mark.long],
    )
    for kind in KINDS
]  # fmt: skip
"""A scenario to play, and whether from its start: then a new host plays it all."""


@pytest.fixture(scope="module")
def two_more_brokers(start_broker: Callable[..., Any]) -> tuple[str, str]:
    return start_broker().bootstrap, start_broker().bootstrap


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    two_brokers: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Played]:
    kind, from_the_start = request.param
    if WRITING and not from_the_start:
        pytest.skip("written by the scenario that is played from its start")
    # The topics of the same scenario without its start are on the others.
    brokers = request.getfixturevalue("two_more_brokers") if from_the_start else two_brokers
    with contextlib.closing(World(brokers)) as world, one_session(spark):
        directory = tmp_path_factory.mktemp(kind.name)
        yield play(kind(world), directory, from_the_start=from_the_start)


@pytest.mark.parametrize("played", FROM_THE_START, indirect=True)
def test_commands_answer_as_they_did(played: Played) -> None:
    assert played.fresh is not None
    assert_same(played.expected["begun"], played.fresh["begun"])
    assert_same(played.expected["went on"], played.fresh["went on"])


@pytest.mark.parametrize("played", FROM_THE_START + RESTORED, indirect=True)
def test_a_stored_state_is_read_on(played: Played) -> None:
    assert_same(played.expected["went on"], played.restored)


@pytest.mark.long
def test_a_state_of_the_first_fingerprint_is_refused_with_the_command_that_starts_again(
    spark: SparkSession, start_broker: Callable[..., Any], tmp_path: Path
) -> None:
    brokers = start_broker().bootstrap, start_broker().bootstrap
    with contextlib.closing(World(brokers)) as world, one_session(spark):
        scenario = Sealed(world)
        begin(scenario, None)
        site = Site(tmp_path, scenario)
        site.restore(OLD_STATE, load(GOLDENS / scenario.name)["stored_at_ms"])
        parity = (site.state / "parity.json").read_bytes()
        site.call("run", "--json")
        refused = json.loads((site.state / "reports/latest.json").read_text())
        (finding,) = (one for one in refused["findings"] if one["severity"] == "unknown")
        assert "fingerprint_version 1" in finding["message"]
        assert start_again(site.state) in finding["action"]
        assert (site.state / "parity.json").read_bytes() == parity
        for name in ("parity.json", "parity"):
            (site.state / name).rename(tmp_path / name)
        again = site.call("run", "--json")["document"]
        assert "unknown" not in {found["severity"] for found in again["findings"]}
        assert {topic["verified_records"] for topic in again["parity"]} != {0}


def test_enough_is_written_down() -> None:
    goldens = [load(path) for path in GOLDENS.iterdir()]
    runs = [golden["went on"]["run"] for golden in goldens] + [
        golden["begun"]["run"] for golden in goldens if "run" in golden["begun"]
    ]
    topics = [topic for run in runs for topic in run["document"]["parity"]]
    found = {kind for topic in topics for kind, count in topic["counts"].items() if count}
    assert found >= {*FAULTS.values(), "moved", "unverifiable", "deleted_early"}
    answers = [golden[part] for golden in goldens for part in ("begun", "went on")]
    exits = {answer["exit"] for some in answers for answer in some.values() if "exit" in answer}
    assert exits >= {0, 1, 2}
    strategies = {topic["strategy"] for topic in topics}
    assert strategies == {"timestamp", "offset_syncs", "latest_by_key", "none"}
    again = [golden["went on"]["run again"]["document"]["spark_started"] for golden in goldens]
    assert again.count(False) == len(goldens) - 1, "all but the compacted one find nothing new"
