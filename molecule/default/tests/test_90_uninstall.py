"""Uninstalling removes exactly what the role made."""

from __future__ import annotations

REPORT = (
    "/etc/mirror-report",
    "/etc/systemd/system/mirror-report",
    "/etc/systemd/system/timers.target.wants/mirror-report",
    "/etc/tmpfiles.d/mirror-report",
    "/opt/mirror-report",
    "/usr/local/bin/mirror-report",
    "/var/lib/mirror-report",
)
# Written by Debian's packages when they are installed, Java's above all.
GENERATED = (
    "/etc/.java",
    "/etc/alternatives/",
    "/etc/default/cacerts",
    "/etc/fonts/conf.d/",
    "/etc/ssl/certs/java",
    "/usr/bin/",  # links into /etc/alternatives
    "/usr/local/share/fonts",
    "/usr/share/binfmts/",
    "/usr/share/man/",
    "/usr/share/mime/",
    "/var/lib/apt/",
    "/var/lib/dpkg/",
)
# Paths of packages; on this Debian /bin, /lib and /sbin lie below /usr.
PACKAGED = "cat /var/lib/dpkg/info/*.list | sed -E 's,^/(bin|lib|sbin)/,/usr/\\1/,'"


def test_uninstalling_leaves_the_tree_as_it_was(lab, outputs):
    def absent(variables):
        for instance in variables["mirrormaker_instances"].values():
            instance["state"] = "absent"

    outputs.append(lab.playbook("mirrormaker.yml", lab.changed(absent)).text)
    argv = ["python3", "/var/tmp/lab-tools/tree.py", "added", "/var/tmp/lab-empty.json"]  # noqa: S108
    packaged = set(lab.mirror.shell(PACKAGED).splitlines())
    added = set(lab.mirror.run(*argv).stdout.splitlines()) - packaged
    assert "/opt/mirror-report" in added, "the report is still there"
    assert sorted(path for path in added if not path.startswith((*REPORT, *GENERATED))) == []
    assert [path for path in added if "mirrormaker" in path] == []
    users = lab.mirror.shell("getent passwd; getent group")
    assert "mirrormaker" not in users
    units = lab.mirror.shell("systemctl list-units --all --no-legend 'mirrormaker*'")
    assert units.strip() == ""
