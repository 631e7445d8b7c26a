"""What the check cannot ask about a flow of which nothing exists yet, permission by permission."""

from __future__ import annotations

import pytest
from labkit.permissions import Checks, named

pytestmark = pytest.mark.long
INSTANCE = "mirrormaker-future"
# All of them on the target; what else allows DESCRIBE hides that it is missing.
TOPICS = (
    "east.checkpoints.internal", "east.future", "east.future.", "mm2-configs.east.internal",
    "mm2-offset-syncs.east.internal", "mm2-offsets.east.internal", "mm2-status.east.internal",
)  # fmt: skip
UNASKABLE = {(operation, "topic", name) for operation in ("READ", "WRITE") for name in TOPICS}


def future(variables):
    """A mirror of topics that nobody has created, to a cluster without a mirror."""
    flow = {"name": "future", "engine": "mm2", "source": "east", "target": "north"}
    flow |= {"topics": ["future", "future\\..*"], "consumer_groups": ["future"]}
    variables["mirror_flows"].append(flow)
    instance = {"hosts": ["mirror1"], "flows": ["future"], "heap": "256m"}
    variables["mirrormaker_instances"][INSTANCE] = instance


@pytest.fixture
def checks(lab):
    """The checks, with what the flow needs granted."""
    variables = lab.changed(future)
    lab.playbook("acls.yml", variables)
    checks = Checks(lab, variables)
    yield checks
    checks.end()


def test_everything_is_named_but_what_cannot_be_asked(checks, measured):
    asked = f"/root/check-{INSTANCE}.json"
    rows = [row for whose, row in checks.rows() if whose == asked]
    assert len(rows) > 10
    unknown = set()
    for row in rows:
        found = checks.without(asked, row)
        missing = [finding for finding in found if finding["kind"] == "missing_permission"]
        assert [finding for finding in missing if not named(finding, row)] == [], row
        if not missing:
            said = [finding for finding in found if finding["kind"] == "permission_unknown"]
            assert any(named(finding, row) for finding in said), (row, found)
            unknown.add((row["operation"], row["resource"], row["name"]))
    measured(named=len(rows) - len(unknown), unknown=sorted(unknown))
    assert unknown == UNASKABLE
