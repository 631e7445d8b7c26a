"""What MirrorMaker 1 must be allowed, as measured with brokers that refuse everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import acls
from ...owner import Owner


def permissions(flow: Mapping[str, Any], _owner: Owner) -> list[acls.Row]:
    """What the mirror needs for a flow."""
    topics = acls.topics(flow)
    return [
        *acls.rows(flow["source"], "topic", topics, {
            "READ": "MirrorMaker 1 ends with status 255, or mirrors nothing and says nothing if it "
            "may see none of the topics",
        }),
        *acls.rows(flow["source"], "group", acls.literal(flow["group_id"]), {
            "READ": "MirrorMaker 1 ends with status 255",
        }),
        *acls.rows(flow["target"], "topic", topics, {
            "WRITE": "MirrorMaker 1 ends with status 255 at the first record",
        }),
    ]  # fmt: skip


def report_permissions(flow: Mapping[str, Any], _owner: Owner) -> list[acls.Row]:
    """What the report needs beyond what it needs for every engine."""
    return [
        *acls.rows(flow["source"], "group", acls.literal(flow["group_id"]), {
            "DESCRIBE": "the report cannot tell how far the mirror is",
        }),
        *acls.on_cluster(flow["target"], {
            "DESCRIBE_CONFIGS": "the report cannot tell whether the brokers create topics",
        }),
    ]  # fmt: skip
