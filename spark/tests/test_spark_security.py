"""Who may speak to Spark's processes cannot be configured, and its secrets are never shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_report import spark_security
from mirror_report.config import ConfigError, Settings, Spark
from mirror_report.config.load import parse
from mirror_report.parity import ParityError
from mirror_report.parity.spark import session

AUTHENTICATED = {"spark.authenticate": "true", "spark.ui.killEnabled": "false"}
ENCRYPTED = {
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.authEngineVersion": "2",
}
FILES = {"spark.io.encryption.enabled": "true"}
TLS = {"spark.ssl.rpc.enabled": "true", "spark.ssl.rpc.trustStore": "/etc/spark/trust.jks"}
JMX = "-Dcom.sun.management.jmxremote"
FAR = "spark://h:7077"


def parsed(master: str, properties: dict[str, str]) -> Settings:
    spark = {"master": master, "properties": properties}
    return parse({"version": 1, "clusters": {}, "flows": [], "spark": spark})


def part(of: dict[str, str], like: dict[str, str]) -> dict[str, str | None]:
    return {name: of.get(name) for name in like}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,3]", FAR, "yarn", "k8s://h"])
def test_every_session_authenticates_and_encrypts_whatever_is_configured(master: str) -> None:
    demanded = AUTHENTICATED | ENCRYPTED | ({} if master.startswith("local") else FILES)
    loosened = dict.fromkeys(demanded, "otherwise")
    found = session.configuration(Spark(master=master, properties=loosened), 0)
    assert part(found, demanded) == demanded


def test_a_cluster_may_encrypt_by_tls_instead() -> None:
    found = session.configuration(Spark(master=FAR, properties=TLS), 0)
    assert part(found, AUTHENTICATED | FILES | TLS) == AUTHENTICATED | FILES | TLS
    assert "spark.network.crypto.enabled" not in found


@pytest.mark.parametrize(
    ("master", "properties", "message"),
    [
        ("local[*]", {"spark.authenticate": False}, "spark.authenticate must be true"),
        ("local[*]", {"spark.network.crypto.enabled": "False"}, "crypto.enabled must be true"),
        ("local[*]", {"spark.network.crypto.saslFallback": True}, "saslFallback must be false"),
        (FAR, {"spark.network.crypto.cipher": "AES/CTR/NoPadding"}, "cipher must be AES/GCM"),
        (FAR, {"spark.io.encryption.enabled": False}, "spark.io.encryption.enabled must be true"),
        (FAR, {**TLS, "spark.authenticate": "no"}, "spark.authenticate must be true"),
        (FAR, {"spark.ssl.rpc.enabled": True}, "spark.ssl.rpc.trustStore"),
        ("local[*]", {"spark.ui.killEnabled": True}, "spark.ui.killEnabled must be false"),
        ("local[*]", {"spark.master": FAR}, "set mirror_report_spark_master"),
        (FAR, {"spark.authenticate.secret": "hushhush"}, "mirror_report_spark_secrets"),
        (FAR, {"spark.ssl.rpc.keyStorePassword": "hushhush"}, "mirror_report_spark_secrets"),
        (FAR, {"spark.hadoop.fs.s3a.secret.key": "hushhush"}, "mirror_report_spark_secrets"),
        (FAR, {"spark.driver.extraJavaOptions": "-Da.b.password=hushhush"}, "holds a secret"),
        (
            "local[*]",
            {"spark.driver.extraJavaOptions": f"{JMX}.port=9 {JMX}.authenticate=false"},
            "nobody has to log in",
        ),
        (
            FAR,
            {"spark.executor.extraJavaOptions": "-agentlib:jdwp=transport=dt_socket"},
            "nobody has to log in",
        ),
    ],
)
def test_what_would_let_others_in_or_show_a_secret_is_refused(
    master: str, properties: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match="mirror_report_spark_properties") as error:
        parsed(master, properties)
    assert message in str(error.value)
    assert "hushhush" not in str(error.value)


@pytest.mark.parametrize(
    ("master", "properties"),
    [
        ("local[*]", {**AUTHENTICATED, **ENCRYPTED, "spark.io.encryption.enabled": False}),
        (FAR, {**AUTHENTICATED, **ENCRYPTED, **FILES}),
        (FAR, TLS),
        (FAR, {"spark.driver.extraJavaOptions": f"{JMX}.port=9 {JMX}.authenticate=true"}),
        (FAR, {"spark.ssl.rpc.keyStore": "/etc/spark/key.jks", "spark.executor.memory": "1g"}),
    ],
)
def test_what_is_so_anyway_may_be_written(master: str, properties: dict[str, str]) -> None:
    assert parsed(master, properties)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Make a directory of credentials."""
    directory = tmp_path / "credentials"
    directory.mkdir(mode=0o700)
    file = directory / "spark-defaults.conf"
    file.write_text("spark.authenticate.secret=hushhush\n")
    file.chmod(0o400)
    return directory


@pytest.mark.parametrize("name", ["CREDENTIALS_DIRECTORY", "SPARK_CONF_DIR"])
def test_a_cluster_s_secret_is_taken_from_a_private_directory(private: Path, name: str) -> None:
    assert session.private_configuration(Spark(master=FAR), {name: str(private)}) == private
    assert session.private_configuration(Spark(), {name: str(private)}) is None


@pytest.mark.parametrize("master", [FAR, "local-cluster[2,1,1024]"])
def test_no_session_is_opened_without_the_secret_of_its_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    for text in (None, "# spark.authenticate.secret x\n", "spark.authenticate.secret=\nspark.a b"):
        if text is not None:
            (tmp_path / "spark-defaults.conf").write_text(text)
        with (
            pytest.raises(ParityError, match="Set mirror_report_spark_secrets"),
            session.open_session(Spark(master=master), 0),
        ):
            pass


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:6443"])
def test_clusters_that_share_a_secret_out_take_none(tmp_path: Path, master: str) -> None:
    settings = Spark(master=master)
    assert session.private_configuration(settings, {}) is None
    (tmp_path / "spark-defaults.conf").write_text("spark.yarn.queue a\n")
    assert session.private_configuration(settings, {"SPARK_CONF_DIR": str(tmp_path)}) is None


@pytest.mark.parametrize("file", [0o440, 0o404, 0o400])
@pytest.mark.parametrize("directory", [0o700, 0o720, 0o702])
def test_a_secret_that_others_can_read_or_replace_is_refused(
    private: Path, file: int, directory: int
) -> None:
    for path, mode in ((private / "spark-defaults.conf", file), (private, directory)):
        os.chown(path, -1, 4711)
        path.chmod(mode)
    where = {"CREDENTIALS_DIRECTORY": str(private)}
    if (file, directory) == (0o400, 0o700):
        assert session.private_configuration(Spark(master=FAR), where) == private
        return
    with pytest.raises(ParityError, match="chmod 400") as error:
        session.private_configuration(Spark(master=FAR), where)
    assert "hushhush" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("spark.authenticate.secret  x", {"spark.authenticate.secret"}),
        (" spark.authenticate.secret=x\na: b", {"spark.authenticate.secret"}),
        ("#spark.authenticate.secret x\nspark.authenticate true", set()),
        ("spark.ssl.rpc.keyPassword : x", {"spark.ssl.rpc.keyPassword"}),
    ],
)
def test_secrets_are_found_as_java_would_read_them(text: str, names: set[str]) -> None:
    assert spark_security.secrets_in(text) == names
