"""Uninstalling removes exactly what the role made."""

from __future__ import annotations

import json

import pytest

REPORT = (
    "/etc/mirror-report",
    "/etc/nginx/conf.d/mirror-report.conf",
    "/etc/systemd/system/mirror-report",
    "/etc/systemd/system/timers.target.wants/mirror-report",
    "/etc/tmpfiles.d/mirror-report",
    "/opt/mirror-report",
    "/usr/local/bin/mirror-report",
    "/var/lib/mirror-report",
    "/var/lib/prometheus",
)
# Written when Debian's packages of Java and nginx are installed.
GENERATED = (
    "/etc/.java",
    "/etc/alternatives/",
    "/etc/default/cacerts",
    "/etc/fonts/conf.d/",
    "/etc/nginx/modules-enabled/",
    "/etc/rc",  # links of nginx's for other init systems
    "/etc/systemd/system/multi-user.target.wants/nginx.service",
    "/etc/ssl/certs/java",
    "/usr/bin/",  # links into /etc/alternatives
    "/usr/local/share/fonts",
    "/usr/share/binfmts/",
    "/usr/share/man/",
    "/usr/share/mime/",
    "/var/lib/apt/",
    "/var/lib/dpkg/",
    "/var/lib/nginx/",
    "/var/lib/systemd/deb-systemd-helper-enabled/",
)
OTHER = "/etc/nginx/conf.d/other.conf"
# Paths of packages; on this Debian /bin, /lib and /sbin lie below /usr.
PACKAGED = "cat /var/lib/dpkg/info/*.list | sed -E 's,^/(bin|lib|sbin)/,/usr/\\1/,'"


def added(lab):
    """Paths that are there and were not on the empty host, and that no package brought."""
    argv = ["python3", "/var/tmp/lab-tools/tree.py", "added", "/var/tmp/lab-empty.json"]  # noqa: S108
    packaged = set(lab.mirror.shell(PACKAGED).splitlines())
    paths = set(lab.mirror.run(*argv).stdout.splitlines()) - packaged
    return sorted(path for path in paths if not path.startswith(GENERATED))


def test_uninstalling_leaves_the_tree_as_it_was(lab, outputs):
    def absent(variables):
        for instance in variables["mirrormaker_instances"].values():
            instance["state"] = "absent"

    outputs.append(lab.playbook("mirrormaker.yml", lab.changed(absent)).text)
    left = added(lab)
    assert "/opt/mirror-report" in left, "the report is still there"
    assert [path for path in left if not path.startswith(REPORT)] == []
    users = lab.mirror.shell("getent passwd; getent group")
    assert "mirrormaker" not in users
    units = lab.mirror.shell("systemctl list-units --all --no-legend 'mirrormaker*'")
    assert units.strip() == ""


@pytest.fixture
def other_site(lab):
    """Another site on the web server of the report."""
    host = lab.mirror
    host.write(OTHER, 'server { listen 127.0.0.1:8081; location / { return 200 "other"; } }')
    host.run("systemctl", "reload", "nginx")
    yield "http://127.0.0.1:8081/"
    host.run("rm", OTHER)
    host.run("systemctl", "disable", "--now", "nginx")


@pytest.mark.long
def test_the_report_goes_without_a_trace_and_the_web_server_of_others_stays(
    lab, other_site, outputs, tmp_path
):
    play = {
        "hosts": "mirror_report",
        "become": True,
        "tasks": [
            {
                "ansible.builtin.include_role": {
                    "name": "mirror_report",
                    "tasks_from": "uninstall",
                },
                "vars": {"mirror_report_remove_state": True},
            }
        ],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    outputs.append(lab.playbook(tmp_path / "play.yml").text)
    ask = f"import urllib.request as r; print(r.urlopen({other_site!r}).read().decode())"
    assert lab.mirror.run("python3", "-c", ask).stdout.strip() == "other"
    assert lab.mirror.shell("ss -Htln 'sport = :8443'").strip() == ""
    assert set(added(lab)) <= {OTHER, "/var/lib/prometheus", "/var/lib/prometheus/node-exporter"}
    units = lab.mirror.shell("systemctl list-units --all --no-legend 'mirror-report*'")
    assert units.strip() == ""
    assert "mirror-report" not in lab.mirror.shell("getent passwd; getent group")
