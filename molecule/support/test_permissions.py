"""The permissions that the model lists are enough; the check names each that is revoked.

Scenarios link to this file as tests/test_<number>_permissions.py.
"""

from __future__ import annotations

import pytest
from labkit.permissions import Checks, named


@pytest.fixture(scope="module")
def checks(lab):
    """The checks of all identities."""
    checks = Checks(lab)
    yield checks
    checks.end()


def test_what_is_listed_is_enough(checks):
    for asked in checks.settings:
        found = checks.findings(asked)
        assert not [finding for finding in found if finding["kind"] == "missing_permission"], asked


@pytest.mark.long
def test_every_permission_is_missed_by_name(checks, measured):
    """Revoke each permission, ask, and grant it again."""
    rows = list(checks.rows())
    assert len(rows) > 10
    for asked, row in rows:
        found = checks.without(asked, row)
        missing = [finding for finding in found if finding["kind"] == "missing_permission"]
        assert missing, (asked, row, found)
        assert [finding for finding in missing if not named(finding, row)] == [], row
    measured(named=len(rows))
