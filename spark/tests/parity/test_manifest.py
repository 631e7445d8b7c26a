"""What the manifest keeps between runs, and what changes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.model import Baseline, Finding, Sample
from mirror_report.parity import FINGERPRINT_VERSION, ParityError
from mirror_report.parity.state import (
    Alignment,
    Cut,
    FatalTopic,
    Gap,
    Manifest,
    SideState,
    Summary,
    Track,
    basis,
)
from mirror_report.parity.state.changes import begin_run, forget_flow, forget_topic
from mirror_report.state.baselines import of_flow

FLOW = Flow(name="f", source="a", target="b", include="t|u", topics=("t", "u"))
MINUTE = 60_000
GOLDENS = Path(__file__).parent / "compatibility" / "goldens"
SAMPLE = Sample("source", 0, 7, 1, "k", "r", None, 3)
CUT = Cut(1, 2, 3)
TRACK = Track((CUT,), CUT, 4, 1)
BASELINE = {
    "recorded_at_ms": 1,
    "topics": {
        "t": {
            "source": {"0": 4},
            "target": {"0": 6},
            "required": {"0": 5},
            "untouched": {"0": 8},
            "sought": {"0": 1},
            "recorded_at_ms": 1,
            "source_id": "id",
            "target_id": "there",
        }
    },
}


def manifest(**sides: SideState) -> Manifest:
    known: dict[Any, SideState] = {("f", side, "t"): state for side, state in sides.items()}
    return Manifest(MINUTE, sides=known)


def loaded(text: str) -> Manifest:
    return Manifest.load(json.loads(text), MINUTE, Path("/state"))


def test_what_digests_rest_on_is_the_baseline_the_engine_and_the_names() -> None:
    mm2 = replace(FLOW, engine=MM2)
    bases = [
        basis(FLOW, of_flow(BASELINE)),
        basis(FLOW, Baseline()),
        basis(mm2, of_flow(BASELINE)),
        basis(replace(mm2, replication_policy="prefix"), of_flow(BASELINE)),
    ]
    assert all(bases.count(entry) == 1 for entry in bases)
    assert json.loads(json.dumps(bases)) == bases, "as the manifest keeps them"


def test_what_no_report_has_told_is_forgotten_with_its_flow_or_topic() -> None:
    news = [
        Finding("critical", "reset", flow, topic, None, None, "deleted", "find out who did")
        for flow, topic in (("f", "t"), ("f", "u"), ("g", "t"))
    ]
    known = Manifest(MINUTE, new_findings=tuple(news))
    assert forget_flow(known, "f").new_findings == (news[2],)
    assert forget_topic(known, "f", "t", ["t"]).new_findings == (news[1], news[2])


def test_what_is_remembered_survives_the_manifest() -> None:
    known = replace(
        manifest(
            source=SideState("id", {0: 1}, {0: 8}, leader_epochs={0: ((3, 0), (5, 6))}),
            target=SideState("id", {0: 1}, {0: 8}, last_records={0: ((7, "content"),)}),
        ),
        gaps=(Gap("f", "source", "t", "t", 0, 1, 2, 3),),
        positions={"f": {"t": {0: 7}}},
        summaries={
            "f": {"t": Summary("1", {"missing": 1}, {"missing": 0}, {"missing": (SAMPLE,)})}
        },
        alignments={"f": {"t": Alignment(("a", "b"), False, {0: TRACK}, {0: (CUT,)})}},
        fatal={"f": {"t": FatalTopic("512m", 9, {("source", "g/t"): {0: 3}})}},
        baselines={"f": basis(FLOW, of_flow(BASELINE))},
    )
    text = json.dumps(known.dump())
    assert loaded(text) == known
    assert loaded("{}") == Manifest(MINUTE), "nothing was remembered yet"


@pytest.mark.parametrize(
    "path", sorted(GOLDENS.glob("*/state/parity.json")), ids=lambda path: path.parts[-3]
)
def test_a_state_is_written_as_it_was_read(path: Path) -> None:
    plain = json.loads(path.read_text())["data"]
    dumped = json.dumps(Manifest.load(plain, plain["bucket_ms"], path.parent).dump())
    assert json.loads(dumped) == plain


def test_a_state_that_knows_no_leader_epochs_is_read_on() -> None:
    plain = manifest(source=SideState("id", {0: 1}, {0: 8})).dump()
    for side in plain["sides"]:
        del side["leader_epochs"], side["last_records"]
    known = loaded(json.dumps(plain)).sides["f", "source", "t"]
    assert (known.next, known.leader_epochs, known.last_records) == ({0: 8}, {}, {})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("fingerprint_version", FINGERPRINT_VERSION + 1, "Install the release that wrote it"),
        ("format", 1, "Install the release that wrote it"),
        ("bucket_ms", 2 * MINUTE, "Set bucket_seconds back"),
        ("sides", [{"flow": "f"}], "damaged"),
        ("gaps", None, "damaged"),
        ("summaries", {"f": {"t": {"run_id": "1"}}}, "damaged"),
    ],
)
def test_what_cannot_be_continued_is_refused_with_the_cure(
    name: str, value: Any, message: str
) -> None:
    plain = manifest(source=SideState("id", {0: 1}, {0: 8})).dump()
    with pytest.raises(ParityError, match=message) as error:
        loaded(json.dumps({**plain, name: value}))
    assert "mv /state/parity.json /state/parity " in str(error.value)


def test_new_findings_are_kept_until_a_report_holds_them() -> None:
    finding = Finding("critical", "reset", "f", "t", None, None, "reset", "look")
    known = begin_run(manifest(), "1", ["f"], lambda _: False)
    known = replace(known, new_findings=(finding,))
    again = loaded(json.dumps(known.dump()))
    again = begin_run(again, "2", ["f"], lambda run: run == "1")
    assert again.new_findings == (finding,), "run 1 did not come to its end"
    again = begin_run(replace(again, finished={"f": "2"}), "3", ["f"], lambda _: False)
    assert again.new_findings == (finding,)
    assert again.unreported == {"f": ("2", "3")}, "nobody got the report of 2"
    again = begin_run(replace(again, finished={"f": "3"}), "4", ["other"], lambda _: True)
    assert again.new_findings == (finding,), "a run of another flow"
    again = begin_run(again, "5", ["f"], lambda _: True)
    assert (again.new_findings, again.unreported["f"]) == ((), ("5",))


def test_what_was_found_is_new_until_a_report_of_its_flow_is_written() -> None:
    reports: set[str] = set()
    known = manifest()

    def run(name: str, *flows: str, reported: bool = False) -> Mapping[str, tuple[str, ...]]:
        nonlocal known
        known = begin_run(known, name, flows, reports.__contains__)
        if reported:
            reports.add(name)
        return known.unreported

    assert run("1", "f", "g") == {"f": ("1",), "g": ("1",)}
    assert run("2", "f", reported=True) == {"f": ("1", "2"), "g": ("1",)}
    assert known.is_unreported("f", "1"), "the report of the second run still holds it"
    assert run("3", "f", "g") == {"f": ("3",), "g": ("1", "3")}
    assert (known.is_unreported("f", "1"), known.is_unreported("g", "1")) == (False, True)
    assert loaded(json.dumps(known.dump())).unreported == known.unreported
