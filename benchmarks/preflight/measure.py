"""How long the validation of an inventory takes, by its number of flows."""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))  # what all benchmarks share

from trials import Trial, Trials, spread

ROOT = Path(__file__).resolve().parents[2]
FLOWS = (1, 50, 300)
HOSTS = 20
# What the topics of a flow look like: apart by their first letters, or by their last ones alone.
PATTERNS = {"heads": r"team{}\..*", "tails": r".*-shop{}"}
VALIDATE = """
import sys, time
from pathlib import Path
import yaml
sys.path.insert(0, sys.argv[1])
from mirror_model.site import mirror_site
from mirror_model.validate import validate_site
site = yaml.safe_load(Path(sys.argv[2]).read_text())["all"]
written = site["vars"]
hosts, groups = list(site["hosts"]), {"mirror_report": ["host0"]}
started = time.monotonic()
found = validate_site(mirror_site(*written.values(), {}, []), hosts, groups, advisories=[])
print(time.monotonic() - started)
sys.exit(bool(found["errors"]))
"""


def inventory(pattern: str, flows: int) -> dict[str, Any]:
    """A site of one MirrorMaker 1 per flow."""
    names = [f"f{number}" for number in range(flows)]
    return {"all": {
        "hosts": {
            f"host{number}": {"ansible_connection": "local"} for number in range(HOSTS)
        },
        "children": {"mirror_report": {"hosts": {"host0": None}}},
        "vars": {
            "kafka_clusters": {
                alias: {"bootstrap_servers": [f"{alias}1:9092"]} for alias in ("east", "west")
            },
            "mirror_flows": [
                {"name": name, "engine": "mm1", "source": "east", "target": "west",
                 "topics": [pattern.format(number)]}
                for number, name in enumerate(names)
            ],
            "mirrormaker_instances": {
                f"mirrormaker-{name}": {"hosts": [f"host{number % HOSTS}"], "flows": [name]}
                for number, name in enumerate(names)
            },
        },
    }}  # fmt: skip


def trial(tree: Path, directory: Path, pattern: str, flows: int) -> Trial:
    """Seconds of the validation alone, and of the whole playbook.

    :param tree: the repository whose code is measured.
    """
    file = directory / "hosts.yml"
    file.write_text(yaml.safe_dump(inventory(pattern, flows)))
    utils = tree / "roles/mirror_model/module_utils"
    alone = subprocess.run(
        [sys.executable, "-c", VALIDATE, str(utils), str(file)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    started = time.monotonic()
    subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", file, "playbooks/validate.yml",
         "--limit", "all:!mirror_report"],
        cwd=tree, check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "ANSIBLE_CONFIG": str(tree / "ansible.cfg")},
    )  # fmt: skip
    return {"judge_s": float(alone.stdout), "playbook_s": time.monotonic() - started}


def worked_out(trials: Mapping[str, Sequence[Trial]]) -> dict[str, Any]:
    """Medians, and each playbook as a part of the one of a single flow."""
    middle = {
        name: {key: median(each[key] for each in some) for key in some[0]}
        for name, some in trials.items()
        if some
    }
    first = {name.split(".")[0]: each for name, each in middle.items() if name.endswith(".1")}
    return {
        "ratios": {
            f"{name}.playbook_of_one_flow": round(
                each["playbook_s"] / first[name.split(".")[0]]["playbook_s"], 2
            )
            for name, each in middle.items()
            if name.split(".")[0] in first
        },
        "spread": spread(trials),
    }


def main() -> None:
    """Measure, variant after variant, each trial of all of them before the next."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--tree", type=Path, default=ROOT, help="repository to measure")
    options = parser.parse_args()
    trials = Trials(options.output, {"hosts": HOSTS, "flows": list(FLOWS)}, worked_out)
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.trials):
            for name, pattern in PATTERNS.items():
                for flows in FLOWS:
                    measure = functools.partial(trial, options.tree, Path(scratch), pattern, flows)
                    trials.take(f"{name}.{flows}", number, measure)


if __name__ == "__main__":
    main()
