"""Uninstalling removes exactly what the role made."""

from __future__ import annotations

# The report stays, and so do Debian's packages that came with the mirrors.
OTHERS = (
    "/etc/alternatives/",
    "/etc/ca-certificates",
    "/etc/default/cacerts",
    "/etc/fonts",
    "/etc/java",
    "/etc/.java",
    "/etc/mirror-report",
    "/etc/ssl/certs/java",
    "/etc/systemd/system/mirror-report",
    "/etc/systemd/system/timers.target.wants/mirror-report",
    "/etc/tmpfiles.d/mirror-report",
    "/opt/mirror-report",
    "/usr/bin/",
    "/usr/include/",
    "/usr/lib/",
    "/usr/local/bin/mirror-report",
    "/usr/share/",
    "/var/lib/apt/",
    "/var/lib/ca-certificates-java",
    "/var/lib/dpkg/",
    "/var/lib/mirror-report",
    "/var/lib/ucf/",
)


def test_uninstalling_leaves_the_tree_as_it_was(lab, outputs):
    def absent(variables):
        for instance in variables["mirrormaker_instances"].values():
            instance["state"] = "absent"

    outputs.append(lab.playbook("mirrormaker.yml", lab.changed(absent)).text)
    argv = ["python3", "/var/tmp/lab-tools/tree.py", "added", "/var/tmp/lab-empty.json"]  # noqa: S108
    added = lab.mirror.run(*argv).stdout.splitlines()
    assert added, "the report is still there"
    assert [path for path in added if "mirrormaker" in path or path.startswith("/opt/kafka")] == []
    assert [path for path in added if not path.startswith(OTHERS)] == []
    users = lab.mirror.shell("getent passwd; getent group")
    assert "mirrormaker" not in users
    units = lab.mirror.shell("systemctl list-units --all --no-legend 'mirrormaker*'")
    assert units.strip() == ""
