"""Everything runs on what Debian 13 brings."""

from __future__ import annotations

JAVA, PYTHON = "java-21-openjdk", "python3.13"


def test_java_and_python_are_those_of_the_release(lab, mm1, mm2):
    assert lab.desk.shell(". /etc/os-release; echo $VERSION_CODENAME").strip() == "trixie"
    for unit in (mm1, mm2):
        assert JAVA in unit.host.run("readlink", f"/proc/{unit.pid}/exe").stdout
    assert PYTHON in lab.desk.run("readlink", "-f", "/opt/mirror-report/venv/bin/python").stdout
    assert JAVA in lab.desk.read("/etc/mirror-report/config.yaml")
