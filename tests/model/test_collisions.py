"""Topics that the target cannot create are left out of flows that do not name them."""

from __future__ import annotations

from mirror_model.collisions import mirror_collisions, mirror_site_without
from mirror_model.site import mirror_site

FLOWS = [
    {"name": "orders", "topics": ["orders", "a.b"]},
    {"name": "payments", "topics": [r"payments\..*"], "topics_exclude": ["payments.x"]},
]
SITE = mirror_site({}, FLOWS, {}, {})


def collides(flow: str, topic: str, kind: str = "name_collides") -> dict[str, str]:
    return {"kind": kind, "flow": flow, "topic": topic}


def test_only_what_collides_and_no_flow_names_itself_is_left_out() -> None:
    found = mirror_collisions(
        SITE,
        [
            collides("payments", "payments.c.d"),
            collides("payments", "payments.a.b"),
            collides("payments", "payments.e", "name_too_long"),
            collides("orders", "a.b"),
            collides("payments", "a.b"),
            collides("of another owner", "a.b"),
        ],
    )
    left_out = ["payments.c.d", "payments.a.b", "a.b"]
    assert found == [collides("payments", topic) for topic in left_out], "orders' own is refused"
    # Several hosts of a Connect cluster may have seen the same.
    orders, payments = mirror_site_without(SITE, [*found, *found]).mirror_flows
    assert orders == FLOWS[0]
    assert payments == {
        **FLOWS[1], "topics_exclude": ["payments.x", "a.b", "payments.a.b", "payments.c.d"],
    }  # fmt: skip


def test_nothing_is_left_out_where_nothing_was_checked() -> None:
    assert mirror_collisions(SITE, []) == []
    assert mirror_site_without(SITE, []) is SITE
