"""What each identity must be allowed: exactly what is needed, by the right name."""

from __future__ import annotations

import itertools
import shlex
import string
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st
from mirror_model import permissions, principals, regex
from mirror_model import report as reports
from mirror_model.errors import ModelError

from tests.model.conftest import Site, certificate_of


def rows(site: Site, **more: Any) -> list[dict[str, Any]]:
    return permissions.mirror_permissions(
        site["clusters"], site["flows"], site["instances"], **more
    )


def short(found: Iterable[dict[str, Any]], *keys: str) -> list[str]:
    """Rows of one line each; a prefix ends in '*'."""
    return [
        " ".join(
            [*(str(row[key]) for key in keys), row["resource"],
             row["name"] + ("*" if row["pattern"] == "prefixed" else ""), row["operation"]]
        )
        for row in found
    ]  # fmt: skip


def of(site: Site, cluster: str, identity: str, **more: Any) -> list[str]:
    return short(
        row for row in rows(site, **more)
        if (row["cluster"], row["identity"]) == (cluster, identity)
    )  # fmt: skip


@pytest.fixture
def mm1(site: Site) -> Site:
    """One flow of literal names, with an identity of its own for every purpose."""
    del site["flows"][1], site["instances"]["mirrormaker-back"]
    site.flow["topics"] = ["orders", "payments.eu"]
    site["clusters"]["west"] = {**site["clusters"]["east"], "bootstrap_servers": ["west1:9092"]}
    return site


@pytest.fixture
def mm2(mm2_site: Site) -> Site:
    """The flow of groups alone, with an identity of its own for every purpose."""
    del mm2_site["flows"][1]
    mm2_site["instances"]["mirrormaker"]["flows"] = ["orders"]
    east = mm2_site["clusters"]["east"]
    mm2_site["clusters"]["west"] = {**east, "bootstrap_servers": ["west1:9092"]}
    return mm2_site


def test_mm1_of_literal_names(mm1: Site) -> None:
    assert of(mm1, "east", "mirror") == [
        "topic orders READ", "topic payments.eu READ", "group mirrormaker-orders READ",
    ]  # fmt: skip
    assert of(mm1, "west", "mirror") == ["topic orders WRITE", "topic payments.eu WRITE"]


def test_the_report_on_mm1(mm1: Site) -> None:
    topics = [
        f"topic {topic} {operation}"
        for topic in ("orders", "payments.eu")
        for operation in ("READ", "DESCRIBE_CONFIGS")
    ]
    cluster = "cluster kafka-cluster"
    group = "group mirrormaker-orders DESCRIBE"
    assert of(mm1, "east", "report") == [*topics, f"{cluster} DESCRIBE", group]
    assert of(mm1, "west", "report") == [
        *topics, f"{cluster} DESCRIBE", f"{cluster} DESCRIBE_CONFIGS"
    ]  # fmt: skip


def test_a_row_says_whom_and_what_for(mm1: Site) -> None:
    first = rows(mm1)[0]
    assert "255" in first.pop("why")
    assert first == {
        "cluster": "east", "identity": "mirror", "principal": "User:mirror", "flows": ["orders"],
        "resource": "topic", "name": "orders", "pattern": "literal", "operation": "READ",
        "wider": False,
    }  # fmt: skip


def test_mm1_of_a_regex(mm1: Site) -> None:
    mm1.flow["topics"] = [r"payments\..*", "orders"]
    mm1.flow["topics_exclude"] = ["orders"]
    assert of(mm1, "east", "mirror")[:-1] == ["topic payments.* READ"]
    assert of(mm1, "west", "mirror") == ["topic payments.* WRITE"]
    assert {row["wider"] for row in rows(mm1) if row["pattern"] == "prefixed"} == {True}


def test_a_regex_that_begins_with_anything_is_about_every_topic(mm1: Site) -> None:
    mm1.flow["topics"] = [".*-orders", "orders"]
    [row] = [row for row in rows(mm1) if row["operation"] == "WRITE"]
    assert (row["name"], row["pattern"], row["wider"]) == ("*", "literal", True)


MIRRORED = ["CREATE", "WRITE", "ALTER", "ALTER_CONFIGS"]
WORKERS = [
    "group east-mm2 READ",
    *(
        f"topic mm2-{topic}.east.internal {operation}"
        for topic in ("configs", "offsets", "status")
        for operation in ("CREATE", "READ", "WRITE")
    ),
]
SYNCS = [f"topic mm2-offset-syncs.east.internal {one}" for one in ("CREATE", "WRITE", "READ")]
CHECKPOINTS = [f"topic east.checkpoints.internal {one}" for one in ("CREATE", "WRITE", "READ")]


def test_mm2_with_groups(mm2: Site) -> None:
    assert of(mm2, "east", "mirror") == [
        "topic orders READ", "topic orders DESCRIBE_CONFIGS",
        "topic payments.* READ", "topic payments.* DESCRIBE_CONFIGS",
        "group billing DESCRIBE",
    ]  # fmt: skip
    assert of(mm2, "west", "mirror") == [
        *WORKERS,
        *(f"topic east.orders {one}" for one in (*MIRRORED, "READ")),
        *(f"topic east.payments.* {one}" for one in (*MIRRORED, "READ")),
        "group billing READ",
        *SYNCS,
        *CHECKPOINTS,
    ]


def test_mm2_without_groups(mm2: Site) -> None:
    mm2.flow.update({"consumer_groups": [], "topics": ["orders"]})
    assert of(mm2, "east", "mirror") == ["topic orders READ", "topic orders DESCRIBE_CONFIGS"]
    assert of(mm2, "west", "mirror") == [
        *WORKERS, *(f"topic east.orders {one}" for one in MIRRORED), *SYNCS[:2],
    ]  # fmt: skip


def test_mm2_that_keeps_names(mm2: Site) -> None:
    mm2.flow.update({"replication_policy": "identity", "consumer_groups": []})
    mirrored = [one for one in of(mm2, "west", "mirror") if one.endswith((" CREATE", " ALTER"))]
    assert [one for one in mirrored if "internal" not in one] == [
        "topic orders CREATE", "topic orders ALTER",
        "topic payments.* CREATE", "topic payments.* ALTER",
    ]  # fmt: skip


def test_mm2_with_a_separator_of_its_own(mm2: Site) -> None:
    mm2.instance["worker_properties"] = {"replication.policy.separator": "_"}
    found = " ".join(of(mm2, "west", "mirror"))
    for name in ("east_orders ", "east_payments.* ", "mm2-offset-syncs_east_internal ",
                 "east_checkpoints_internal ", "mm2-status.east.internal "):  # fmt: skip
        assert f"topic {name}" in found


def test_mm2_is_not_given_what_it_never_mirrors(mm2: Site) -> None:
    mm2.flow["topics"] = ["__consumer_offsets", "west.orders", "orders"]
    assert of(mm2, "east", "mirror")[:2] == ["topic orders READ", "topic orders DESCRIBE_CONFIGS"]
    assert "__consumer_offsets" not in str(rows(mm2))


def test_more_nodes_need_no_more(mm2: Site) -> None:
    one = rows(mm2)
    mm2.instance["hosts"] = ["mirror1", "mirror2"]
    assert rows(mm2) == one


@pytest.mark.parametrize(
    ("key", "value", "more", "fewer"),
    [
        ("emit.heartbeats.enabled", True,
         ["west topic heartbeats CREATE", "west topic heartbeats WRITE"], []),
        # Null takes our default away: Kafka's holds.
        ("emit.heartbeats.enabled", None,
         ["west topic heartbeats CREATE", "west topic heartbeats WRITE"], []),
        ("emit.offset-syncs.enabled", None, [], []),
        ("sync.topic.acls.enabled", "true",
         ["east cluster kafka-cluster DESCRIBE", "west cluster kafka-cluster ALTER"], []),
        ("sync.topic.configs.enabled", False, [],
         ["west topic east.orders ALTER_CONFIGS", "west topic east.payments.* ALTER_CONFIGS"]),
        ("emit.offset-syncs.enabled", False, [], [f"west {one}" for one in sorted(SYNCS)]),
    ],
)  # fmt: skip
def test_what_a_property_changes(
    mm2: Site, key: str, value: object, more: list[str], fewer: list[str]
) -> None:
    before = short((row for row in rows(mm2) if row["identity"] == "mirror"), "cluster")
    mm2.flow["properties"] = {key: value}
    after = short((row for row in rows(mm2) if row["identity"] == "mirror"), "cluster")
    assert sorted(set(after) - set(before)) == sorted(more)
    assert sorted(set(before) - set(after)) == sorted(fewer)


def test_the_report_on_mm2(mm2: Site) -> None:
    mm2.flow["topics"] = ["orders"]
    assert of(mm2, "east", "report") == [
        "topic orders READ", "topic orders DESCRIBE_CONFIGS", "cluster kafka-cluster DESCRIBE",
        "group billing DESCRIBE",
    ]  # fmt: skip
    assert sorted(of(mm2, "west", "report")) == sorted([
        "topic east.orders READ", "topic east.orders DESCRIBE_CONFIGS",
        "cluster kafka-cluster DESCRIBE",
        "group east-mm2 DESCRIBE",
        "group billing DESCRIBE",
        *(f"topic mm2-{one}.east.internal READ" for one in ("offsets", "status", "offset-syncs")),
        *(f"topic mm2-{one}.east.internal DESCRIBE_CONFIGS"
          for one in ("offsets", "status", "offset-syncs", "configs")),
        "topic mm2-configs.east.internal DESCRIBE",
        "topic east.checkpoints.internal READ",
        "topic east.checkpoints.internal DESCRIBE_CONFIGS",
    ])  # fmt: skip


def test_the_report_on_mm2_that_syncs_no_groups(mm2: Site) -> None:
    mm2.flow["consumer_groups"] = []
    found = " ".join(of(mm2, "east", "report") + of(mm2, "west", "report"))
    assert "checkpoints" not in found
    assert "group billing" not in found


def test_nobody_is_given_offset_syncs_that_nobody_writes(mm2: Site) -> None:
    assert "offset-syncs" in str(rows(mm2))
    mm2.flow["properties"] = {"emit.offset-syncs.enabled": False}
    assert "offset-syncs" not in str(rows(mm2))


def test_what_several_flows_need_is_given_once(mm1: Site) -> None:
    mm1["flows"] += [
        {**mm1.flow, "name": "more", "topics": [r"payments\..*"], "target": "north"},
        {**mm1.flow, "name": "same", "topics": ["orders"], "target": "north"},
    ]
    mm1["instances"] |= {
        f"mirrormaker-{one}": {"hosts": ["mirror2"], "flows": [one]} for one in ("more", "same")
    }
    found = {
        (row["resource"], row["name"], row["operation"]): row["flows"]
        for row in rows(mm1)
        if row["cluster"] == "east" and row["identity"] == "mirror"
    }
    assert found == {
        ("topic", "orders", "READ"): ["orders", "same"],
        ("topic", "payments.", "READ"): ["orders", "more"],
        ("group", "mirrormaker-orders", "READ"): ["orders"],
        ("group", "mirrormaker-more", "READ"): ["more"],
        ("group", "mirrormaker-same", "READ"): ["same"],
    }


def test_one_principal_for_both_gets_each_permission_once(mm1: Site) -> None:
    del mm1["clusters"]["east"]["identities"]["report"]  # both clusters share one map
    mm1.flow["topics"] = ["orders"]
    assert short(rows(mm1), "cluster", "principal") == [
        "east User:mirror topic orders READ",
        "east User:mirror group mirrormaker-orders READ",
        "west User:mirror topic orders WRITE",
        "east User:mirror topic orders DESCRIBE_CONFIGS",
        "west User:mirror topic orders READ",
        "west User:mirror topic orders DESCRIBE_CONFIGS",
        "east User:mirror cluster kafka-cluster DESCRIBE",
        "west User:mirror cluster kafka-cluster DESCRIBE",
        "west User:mirror cluster kafka-cluster DESCRIBE_CONFIGS",
    ]
    assert short(rows(mm1, report_identity="mirror")) == short(rows(mm1))


@pytest.mark.parametrize("change", [{"state": "absent"}, {"hosts": []}])
def test_what_has_no_place_needs_nothing(mm1: Site, change: dict[str, Any]) -> None:
    mm1.instance.update(change)
    assert rows(mm1) == []


def test_the_report_is_told_what_its_identity_needs(mm2: Site) -> None:
    for identity in ("mirror", "report"):
        model = reports.mirror_report_model(
            mm2["clusters"], mm2["flows"], mm2["instances"], identity
        )
        told = model["flows"][0]["permissions"]
        assert short(told, "cluster") == short(
            (row for row in rows(mm2) if row["identity"] == identity), "cluster"
        )
        assert set(told[0]) == {
            "cluster", "resource", "name", "pattern", "operation", "why", "wider",
        }  # fmt: skip


def test_the_reports_flow_is_told_its_own_permissions_alone(mm2_site: Site) -> None:
    model = reports.mirror_report_model(
        mm2_site["clusters"], mm2_site["flows"], mm2_site["instances"], "report"
    )
    for flow in model["flows"]:
        assert {row["cluster"] for row in flow["permissions"]} == {flow["source"], "west"}


PATTERNS = ["orders", r"payments\..*", "pay.*", ".*", "orders|payments", "o.?", "payments.eu"]


@settings(max_examples=60, deadline=None)
@given(
    engine=st.sampled_from(["mm1", "mm2"]),
    chosen=st.lists(st.lists(st.sampled_from(PATTERNS), min_size=1, unique=True), min_size=1,
                    max_size=3),
    shared=st.booleans(),
)  # fmt: skip
def test_no_permission_implies_another(engine: str, chosen: list[list[str]], shared: bool) -> None:
    identity = {"sasl_mechanism": "PLAIN", "username": "mirror", "password": "CANARY"}
    identities = {"mirror": identity}
    if not shared:
        identities["report"] = {**identity, "username": "report"}
    cluster = {"security_protocol": "SASL_SSL", "identities": identities}
    site: dict[str, Any] = {
        "clusters": dict.fromkeys(("east", "west"), cluster),
        "flows": [
            {"name": f"f{number}", "engine": engine, "source": "east", "target": "west",
             "topics": topics}
            for number, topics in enumerate(chosen)
        ],
        "instances": {
            f"mirrormaker-{number}": {"hosts": ["h"], "flows": [f"f{number}"]}
            for number in range(len(chosen))
        },
    }  # fmt: skip
    found = permissions.mirror_permissions(**site)
    for one, other in itertools.permutations(found, 2):
        assert not allows(one, other), (one, other)
    # And nothing that a flow needs was left out on the way.
    for number, _ in enumerate(chosen):
        alone = permissions.mirror_permissions(
            site["clusters"], [site["flows"][number]], site["instances"]
        )
        for needed in alone:
            granted = [one for one in found if allows(one, needed)]
            assert any(f"f{number}" in one["flows"] for one in granted), needed


def allows(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether Kafka's StandardAuthorizer allows the second to whoever holds the first."""
    if any(one[key] != other[key] for key in ("cluster", "principal", "resource")):
        return False
    implied = {
        "DESCRIBE": {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"},
        "DESCRIBE_CONFIGS": {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
    }
    if one["operation"] not in implied.get(other["operation"], {other["operation"]}):
        return False
    if one["name"] == "*":
        return True
    if one["pattern"] == "prefixed":
        return bool(other["name"].startswith(one["name"]))
    return bool(other["pattern"] == "literal" and other["name"] == one["name"])


# Principals.


def name_of(*rdns: list[tuple[x509.ObjectIdentifier, str]]) -> x509.Name:
    return x509.Name([
        x509.RelativeDistinguishedName([x509.NameAttribute(oid, value) for oid, value in rdn])
        for rdn in rdns
    ])  # fmt: skip


CN, ORG, C = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.COUNTRY_NAME
SUBJECTS = {
    "CN=mirror": name_of([(CN, "mirror")]),
    "CN=mirror,OU=Data,O=Example Org,L=Ulm,ST=BW,C=DE": name_of(
        [(C, "DE")], [(NameOID.STATE_OR_PROVINCE_NAME, "BW")], [(NameOID.LOCALITY_NAME, "Ulm")],
        [(ORG, "Example Org")], [(NameOID.ORGANIZATIONAL_UNIT_NAME, "Data")], [(CN, "mirror")],
    ),
    r"CN=a\,b\+c\"d\\e\<f\>g\;h\#i\=j": name_of([(CN, r'a,b+c"d\e<f>g;h#i=j')]),
    r"CN=\ \ two\ ,O=Ä é 日": name_of([(ORG, "Ä é 日")], [(CN, "  two ")]),
    "UID=m,STREET=Weg 1,DC=example,DC=org": name_of(
        [(NameOID.DOMAIN_COMPONENT, "org")], [(NameOID.DOMAIN_COMPONENT, "example")],
        [(NameOID.STREET_ADDRESS, "Weg 1")], [(NameOID.USER_ID, "m")],
    ),
    "1.2.840.113549.1.9.1=#160b614065786d706c652e6f72,CN=m": name_of(
        [(CN, "m")], [(NameOID.EMAIL_ADDRESS, "a@exmple.or")]
    ),
    "2.5.4.5=#13023137": name_of([(NameOID.SERIAL_NUMBER, "17")]),
    "CN=m+O=x": name_of([(ORG, "x"), (CN, "m")]),
}  # fmt: skip


@pytest.mark.parametrize("written", SUBJECTS)
def test_a_subject_is_written_as_java_does(written: str) -> None:
    assert principals.subject_of(certificate_of(SUBJECTS[written])) == written


def java_name(java: Callable[[str], Any], certificate: str) -> str:
    factory = java("java.security.cert.CertificateFactory").getInstance("X.509")
    stream = java("java.io.ByteArrayInputStream")(certificate.encode())
    return str(factory.generateCertificate(stream).getSubjectX500Principal().getName())


def test_java_writes_these_subjects_so(java: Callable[[str], Any]) -> None:
    for written, subject in SUBJECTS.items():
        assert java_name(java, certificate_of(subject)) == written


PRINTABLE = string.ascii_letters + string.digits + " '()+,-./:=?"


@pytest.mark.filterwarnings("ignore:Attribute's length")
def test_java_and_we_agree_on_any_subject(java: Callable[[str], Any]) -> None:
    oids = [CN, ORG, NameOID.USER_ID, NameOID.EMAIL_ADDRESS, NameOID.SERIAL_NUMBER, NameOID.TITLE]
    ours = ' ab\r\n\t\0,=+<>#;"\\/*@é日ß\u00a0😀'
    everything = st.sampled_from(ours) | st.characters(exclude_categories=["Cs"])
    kinds = {"UTF8String": everything, "UniversalString": everything,
             "PrintableString": st.sampled_from(PRINTABLE),
             "IA5String": st.characters(max_codepoint=127),
             "T61String": st.characters(max_codepoint=127)}  # fmt: skip
    values = st.one_of(*(
        st.tuples(st.just(kind), st.text(some, min_size=1, max_size=40) | st.just("x" * 300))
        for kind, some in kinds.items()
    ))  # fmt: skip

    @settings(max_examples=500, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(oids), values), min_size=1, max_size=4))
    def agree(attributes: list[tuple[x509.ObjectIdentifier, tuple[str, str]]]) -> None:
        certificate = certificate_of(x509.Name([
            x509.RelativeDistinguishedName(
                [x509.NameAttribute(oid, text, _type=_ASN1Type[kind], _validate=False)]
            )
            for oid, (kind, text) in attributes
        ]))  # fmt: skip
        assert principals.subject_of(certificate) == java_name(java, certificate)

    agree()


def test_a_subject_that_java_garbles_is_not_guessed() -> None:
    old = x509.NameAttribute(CN, "mirror", _type=_ASN1Type.BMPString)
    with pytest.raises(ModelError, match="set principal"):
        principals.subject_of(certificate_of(x509.Name([old])))


@pytest.mark.parametrize(
    ("cluster", "identity", "principal"),
    [
        ({"security_protocol": "PLAINTEXT"}, {"username": "u"}, "User:ANONYMOUS"),
        ({"security_protocol": "SASL_PLAINTEXT"}, {"username": "u"}, "User:u"),
        ({"security_protocol": "SASL_SSL"}, {"username": "u", "ssl_certificate": "x"}, "User:u"),
        ({"security_protocol": "SASL_SSL"}, {}, None),
        ({"security_protocol": "SSL"}, {}, "User:ANONYMOUS"),
        ({"security_protocol": "SSL", "properties": {"ssl.keystore.location": "/k"}}, {}, None),
        ({"security_protocol": "SSL"}, {"ssl_certificate": "x", "principal": "User:m"}, "User:m"),
    ],
)
def test_principal(
    cluster: dict[str, Any], identity: dict[str, Any], principal: str | None
) -> None:
    clusters = {"east": {**cluster, "identities": {"mirror": identity}}}
    assert principals.principal_of(clusters, "east", "mirror") == principal
    assert principals.principal_of(clusters, "east", "report") == principal


def test_permissions_go_to_the_subject_of_a_certificate(mm1: Site) -> None:
    pair = {
        "ssl_certificate": certificate_of(name_of([(ORG, "a, b")], [(CN, "m")])),
        "ssl_key": "x",
    }
    mm1["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": pair}}
    assert {row["principal"] for row in rows(mm1) if row["cluster"] == "east"} == {
        r"User:CN=m,O=a\, b"
    }


def test_a_certificate_that_cannot_be_read_is_named(mm1: Site) -> None:
    pair = {"ssl_certificate": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"}
    mm1["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": pair}}
    with pytest.raises(ModelError, match=r"kafka_clusters\.east\.identities: ssl_certificate"):
        rows(mm1)


def test_nobody_is_guessed(mm1: Site) -> None:
    mm1["clusters"]["east"] |= {
        "security_protocol": "SSL",
        "identities": {},
        "properties": {"ssl.keystore.location": "/etc/k.jks"},
    }
    with pytest.raises(ModelError, match=r"kafka_clusters\.east\.identities\.mirror\.principal"):
        rows(mm1)


@pytest.mark.parametrize("principal", ["mirror", "User:", 7])
def test_a_principal_without_its_kind_is_refused(mm1: Site, principal: object) -> None:
    mm1["clusters"]["east"]["identities"]["mirror"]["principal"] = principal
    assert any("identities.mirror.principal" in one for one in mm1.judge()["errors"])


# What Kafka's tool is told.


def test_commands(mm1: Site) -> None:
    mm1.flow["topics"] = ["orders"]
    commands = permissions.to_kafka_acls(rows(mm1), mm1["clusters"])
    login = "--command-config admin.properties"
    assert commands["west"] == [
        f"kafka-acls.sh --bootstrap-server west1:9092 {login} --add --allow-principal {rest}"
        for rest in (
            "User:mirror --operation Write --topic orders --resource-pattern-type literal",
            "User:mirror-report --operation Read --operation DescribeConfigs --topic orders "
            "--resource-pattern-type literal",
            "User:mirror-report --operation Describe --operation DescribeConfigs --cluster",
        )
    ]
    assert "--bootstrap-server east1:9092,east2:9092 " in commands["east"][0]


def test_commands_survive_a_shell(mm1: Site) -> None:
    principal = """User:CN=it's \\"m\\",O=$(id) `x` *"""
    mm1["clusters"]["east"]["identities"]["mirror"]["principal"] = principal
    mm1.flow["topics"] = [".*"]
    words = shlex.split(permissions.to_kafka_acls(rows(mm1), mm1["clusters"])["east"][0])
    assert words[words.index("--allow-principal") + 1] == principal
    assert words[words.index("--topic") + 1] == "*"


# What names begin with.


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("payments.eu", [("payments.eu", True)]),
        (r"payments\..*", [("payments.", False)]),
        ("orders(-dlq)?", [("orders", True), ("orders-dlq", True)]),
        (r"prd-(a|b)\.x+", [("prd-a.x", False), ("prd-b.x", False)]),
        ("orders|orders-.*|o.*", [("o", False)]),
        (r"topic-\d", [("topic-", False)]),
        (".*", [("", False)]),
        ("[^-]+", [("", False)]),
        ("(ab){2}", [("abab", True)]),
        ("a{0}b?", [("b", True)]),
    ],
)
def test_beginnings(pattern: str, found: list[tuple[str, bool]]) -> None:
    assert regex.beginnings(pattern) == found
