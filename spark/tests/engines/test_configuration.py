"""What the configuration of a flow must name goes by the facts of its engine."""

from dataclasses import replace
from typing import Any

import pytest
from made_up import MADE_UP, flow_of

from mirror_report import engines, observe
from mirror_report.config import ConfigError
from mirror_report.config.load import parse
from mirror_report.engines import Engine, PositionStore, WorkerStore


def document(engine: Engine, **names: str) -> dict[str, Any]:
    flow = {
        "name": "orders", "engine": engine.name, "source": "east", "target": "west",
        "include": "t.*", "group_id": "g", "offset_topic": "o", "status_topic": "s",
        "offset_syncs_topic": "y", **names,
    }  # fmt: skip
    clusters = {alias: {"bootstrap_servers": [f"{alias}:9092"]} for alias in ("east", "west")}
    return {"version": 1, "clusters": clusters, "flows": [flow]}


@pytest.mark.parametrize("engine", MADE_UP, ids=lambda engine: engine.name)
def test_configuration_asks_for_what_the_engine_keeps(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engines.ENGINES, engine.name, engine)  # type: ignore[arg-type]
    assert parse(document(engine)).flow("orders").engine is engine
    for names, needed in (
        ({"offset_topic": ""}, engine.positions is PositionStore.CONNECT_OFFSETS),
        ({"status_topic": ""}, engine.workers is WorkerStore.STATUS_TOPIC),
        ({"offset_syncs_topic": ""}, engine.has_offset_syncs),
        ({"replication_policy": "x"}, engine.has_replication_policy),
        ({"separator": ""}, engine.has_replication_policy),
    ):
        if needed:
            with pytest.raises(ConfigError, match=next(iter(names))):
                parse(document(engine, **names))
        else:
            parse(document(engine, **names))


@pytest.mark.parametrize("engine", MADE_UP, ids=lambda engine: engine.name)
def test_internal_topics_are_left_out_also_if_they_are_named_where_the_engine_skips_them(
    engine: Engine,
) -> None:
    named = ("__in", "__consumer_offsets")
    flow = replace(flow_of(engine), include="__.*", topics=named)
    assert flow.matches("__in")
    assert flow.matches("__consumer_offsets") is not engine.skips_internal_topics
    assert set(observe.literals(flow)) == {name for name in named if flow.matches(name)}
