"""Links and pipes that a compromised report plants in its directories do not mislead root."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.long

STATE, METRICS, WEB = (f"/var/lib/mirror-report{suffix}" for suffix in ("", "-metrics", "-web"))
SECRET = "/root/planted-secret"
CANARY = "canary-9d07c4"
REPORTS = f"{STATE}/reports"
# Each takes the place of a file of the report.
LINKS = [f"{REPORTS}/latest.html", f"{METRICS}/mirror_report.prom", f"{WEB}/latest.html"]
PIPES = [f"{REPORTS}/latest.json", f"{METRICS}/mirror_report_parity.prom", f"{WEB}/latest.json"]
BESIDE = {"ln -s " + SECRET: "link", "mkfifo": "pipe"}


def as_report(host, script):
    """Run a script as the user of the report."""
    return host.run("runuser", "-u", "mirror-report", "--", "sh", "-ec", script)


def found(host, *paths):
    """Kind, owner, group and mode of paths, links themselves."""
    return host.run("stat", "--format=%F %U:%G %a", *paths).stdout.splitlines()


@pytest.fixture(scope="module")
def planted(lab, outputs):
    """Change the web view and make the archive of Java classes, over links; what it said."""
    host = lab.mirror
    host.run("sh", "-c", f"umask 077; echo {CANARY} > {SECRET}", check=True)
    before = found(host, SECRET, "/root")
    plant = [f"cd {STATE}", f"ln -s {SECRET} planted.json", "mkfifo pipe.json", "mkdir classes"]
    plant += [f"ln -s {SECRET} classes/mirror-report-0.jsa", "mkfifo classes/mirror-report-1.jsa"]
    plant += [f"[ ! -e {path} ] || mv {path} {path}.kept" for path in (*LINKS, *PIPES)]
    plant += [f"ln -s {SECRET} {path}" for path in LINKS] + [f"mkfifo {path}" for path in PIPES]
    as_report(host, "; ".join(plant))
    changed = {"mirror_report_web_hsts_seconds": 60, "mirror_report_class_archive": True}
    done = lab.playbook("site.yml", changed, "--diff", "-v", check=False)
    outputs.append(done.text)
    yield done, before
    kept = [f"[ ! -e {path}.kept ] || mv -f {path}.kept {path}" for path in (*LINKS, *PIPES)]
    as_report(host, f"cd {STATE}; rm -f planted.json pipe.json classes/mirror-report-[01].jsa")
    as_report(host, "; ".join(kept))
    host.run("rm", SECRET)


def test_the_run_ends_and_names_what_is_no_report(planted):
    done, _ = planted
    assert done.status != 0
    said = " ".join(done.text.split())  # Ansible wraps its lines
    assert f"{REPORTS}/latest.html cannot be read: a link stands there" in said, said[-3000:]
    assert "failed=1 " in done.stdout, "and nothing else failed"


def test_nothing_of_what_links_lead_to_is_shown_or_published(lab, planted):
    done, before = planted
    host = lab.mirror
    assert CANARY not in done.text
    places = f"{METRICS} {WEB} {STATE} /var/lib/prometheus /var/cache/mirror-report"
    argv = ["grep", "--recursive", "--devices=skip", "--files-with-matches", CANARY]
    assert host.run(*argv, *places.split(), check=False).stdout == ""
    assert found(host, SECRET, "/root") == before
    for user in ("mirror-report", "www-data", "nobody"):
        for path in (SECRET, *LINKS):
            read = ["runuser", "-u", user, "--", "timeout", "20", "cat", path]
            assert CANARY not in host.run(*read, check=False).text


def test_metrics_are_files_of_the_report_again(lab, planted):
    assert planted
    files = [path for path in (*LINKS, *PIPES) if path.startswith(METRICS)]
    wanted = "regular empty file mirror-report:mirror-report 644"
    assert found(lab.mirror, *files) == [wanted] * 2


def test_root_shows_no_report_by_way_of_a_link_or_a_pipe(lab, planted):
    assert planted
    host = lab.mirror
    done = host.run("mirror-report", "show", check=False, timeout=60)
    assert done.status == 3
    assert "latest.json cannot be read: it is no file" in done.text
    as_report(host, f"rm {REPORTS}/latest.json; ln -s {SECRET} {REPORTS}/latest.json")
    done = host.run("mirror-report", "show", "--json", check=False, timeout=60)
    assert done.status == 3
    assert "latest.json cannot be read: a link stands there" in done.text
    assert CANARY not in done.text


def test_the_commands_of_the_role_end_over_a_pipe(lab, planted):
    assert planted
    host = lab.mirror
    path = f"{STATE}/baseline.json"
    as_report(host, f"mv {path} {path}.kept; mkfifo {path}")
    try:
        done = host.run("mirror-report", "baseline", check=False, timeout=120)
    finally:
        as_report(host, f"mv -f {path}.kept {path}")
    assert done.status == 3
    assert f"{path} cannot be read: it is no file" in done.text
