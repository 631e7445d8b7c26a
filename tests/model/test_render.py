"""Rendered text is read back by Java, Kafka and systemd's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirror_model.keys import ModelError
from mirror_model.render import (
    to_environment_file,
    to_jaas,
    to_java_properties,
    to_plain_users,
)

from tests.hostile_values import ENVIRONMENT, PASSWORDS, PROPERTIES


def read_by_java(java: Callable[[str], Any], text: str) -> dict[str, str]:
    properties = java("java.util.Properties")()
    properties.load(java("java.io.ByteArrayInputStream")(text.encode("iso-8859-1")))
    return {name: properties.getProperty(name) for name in properties.stringPropertyNames()}


@pytest.mark.parametrize("name", PROPERTIES)
def test_java_reads_back_every_value(java: Callable[[str], Any], name: str) -> None:
    written = {"before": "1", "key": PROPERTIES[name], "z": "2"}
    assert read_by_java(java, to_java_properties(written)) == written


@pytest.mark.parametrize("name", [name for name, value in PROPERTIES.items() if value])
def test_java_reads_back_every_name(java: Callable[[str], Any], name: str) -> None:
    written = {PROPERTIES[name]: "value", "z": "2"}
    assert read_by_java(java, to_java_properties(written)) == written


def test_java_reads_back_anything(java: Callable[[str], Any]) -> None:
    text = st.text(st.characters(exclude_categories=["Cs"]))

    @settings(deadline=None)
    @given(st.dictionaries(text.filter(bool), text, max_size=4))
    def read_back(written: dict[str, str]) -> None:
        assert read_by_java(java, to_java_properties(written)) == written

    read_back()


def test_properties_of_every_type() -> None:
    written = {"b": True, "a": 7, "list": ["x", 1, False], "none": None, "float": 0.5}
    assert to_java_properties(written) == "a=7\nb=true\nfloat=0.5\nlist=x,1,false\n"


def test_properties_refuse_what_has_no_text() -> None:
    with pytest.raises(ModelError, match="deep"):
        to_java_properties({"deep": {"a": 1}})
    with pytest.raises(ModelError, match="name"):
        to_java_properties({"": "a"})


def test_environment_file_as_measured_with_systemd() -> None:
    written = {"A": r'prd-(a|b)\..*"$HOME`id`', "B": 7, "C": True, "D": "", "E": None}
    assert to_environment_file(written) == (
        'A="prd-(a|b)\\\\..*\\"$HOME`id`"\nB="7"\nC="true"\nD=""\n'
    )


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_environment_file_by_systemds_rule_of_double_quotes(name: str) -> None:
    line = to_environment_file({"A": ENVIRONMENT[name]})
    assert line.startswith('A="')
    assert line.endswith('"\n')
    assert line.count("\n") == 1
    inner, value = iter(line[3:-2]), ""
    for char in inner:
        assert char != '"'
        value += next(inner) if char == "\\" else char
    assert value == ENVIRONMENT[name]


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "\x1b", "\x7f", "\ud800"])
def test_environment_file_refuses_what_systemd_would_cut(value: str) -> None:
    with pytest.raises(ModelError, match="variable A") as problem:
        to_environment_file({"A": value})
    assert value not in str(problem.value)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "export A", "Ä"])
def test_environment_file_refuses_bad_names(name: str) -> None:
    with pytest.raises(ModelError, match="letters, digits"):
        to_environment_file({name: "x"})


@pytest.mark.parametrize("name", PASSWORDS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_logs_in_with_every_password(
    java: Callable[[str], Any], name: str, mechanism: str
) -> None:
    identity = {
        "sasl_mechanism": mechanism, "username": "u" + PASSWORDS[name], "password": PASSWORDS[name]
    }  # fmt: skip
    configs = java("java.util.HashMap")()
    secret = java("org.apache.kafka.common.config.types.Password")(to_jaas(identity))
    configs.put("sasl.jaas.config", secret)
    context = java("org.apache.kafka.common.security.JaasContext").loadClientContext(configs)
    subject = java("javax.security.auth.Subject")()
    login = java("javax.security.auth.login.LoginContext")(
        context.name(), subject, None, context.configuration()
    )
    login.login()
    assert list(subject.getPublicCredentials()) == ["u" + PASSWORDS[name]]
    assert list(subject.getPrivateCredentials()) == [PASSWORDS[name]]


@pytest.mark.parametrize("password", ["CANARY\n", "CANARY\r", "CANARY\0", "", None, 5])
def test_jaas_refuses_what_its_parser_cannot_carry(password: Any) -> None:
    with pytest.raises(ModelError, match="password") as problem:
        to_jaas({"sasl_mechanism": "PLAIN", "username": "u", "password": password})
    assert "CANARY" not in str(problem.value)


def test_the_users_of_a_broker_are_quoted() -> None:
    users = [{"username": "a b", "password": 'p"1'}, {"username": "c", "password": "\\"}]
    assert to_plain_users(users) == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' "user_a b"="p\\"1" "user_c"="\\\\";'
    )


def test_jaas_refuses_unknown_mechanisms() -> None:
    with pytest.raises(ModelError, match="SCRAM-SHA-512"):
        to_jaas({"sasl_mechanism": "GSSAPI", "username": "u", "password": "p"})
