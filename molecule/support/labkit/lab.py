"""What tests do with a scenario: ask clusters, produce, make reports, run playbooks."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labkit.controller import (
    ACKS,
    ENVIRONMENT,
    HUNG_SECONDS,
    PYTHON,
    ROOT,
    TOOLS,
    Result,
    wait,
)
from labkit.site import Site, Variables
from labkit.tools import Prober, Production, acknowledged


@dataclasses.dataclass(frozen=True)
class Engine:
    """What differs between the engines when an instance runs on several hosts.

    :param cluster: where its processes find each other, as members of ``group``.
    :param prefix: stands before a topic's name on the target.
    :param change: changes something of the instance that its processes are started with.
    :param playbook: deploys its processes.
    """

    cluster: str
    group: str
    prefix: str
    change: Callable[[Variables], None]
    playbook: str = "mirrormaker.yml"


class Lab(Site):
    """The hosts of a scenario and what tests do with them; all flows lead to ``west``."""

    def __init__(self, scenario: Path) -> None:
        super().__init__(scenario)
        self.prober = Prober(self.desk)

    def probe(self, *steps: Mapping[str, Any]) -> list[Any]:
        """Run the steps of ``lab/tools/probe.py`` and return their answers."""
        clusters = {name: self.connection(name) for name in self.clusters}
        return self.prober.ask({"clusters": clusters, "steps": steps})

    def ends(self, cluster: str, topics: Sequence[str]) -> dict[str, int]:
        """Sum of the log end offsets per topic."""
        found = self.probe({"do": "ends", "cluster": cluster, "topics": list(topics)})[0]
        return {topic: sum(parts.values()) for topic, parts in found.items()}

    def positions(self, flow: str) -> dict[str, Any]:
        """Compose the step that reads what a flow has committed."""
        (model,) = (each for each in self.variables["mirror_flows"] if each["name"] == flow)
        if model["engine"] == "mm1":
            return {"do": "positions", "cluster": model["source"], "group": f"mirrormaker-{flow}"}
        connect = model.get("connect")
        topic = f"{connect}-offsets" if connect else f"mm2-offsets.{model['source']}.internal"
        return {"do": "connect_positions", "cluster": model["target"], "topic": topic}

    def lag(self, flow: str, topics: Sequence[str]) -> int:
        """Records that the flow has not committed, by end offsets and positions."""
        (source,) = (
            each["source"] for each in self.variables["mirror_flows"] if each["name"] == flow
        )
        ends, starts, positions = self.probe(
            {"do": "ends", "cluster": source, "topics": list(topics)},
            {"do": "starts", "cluster": source, "topics": list(topics)},
            self.positions(flow),
        )
        return sum(
            end - positions.get(topic, {}).get(partition, starts[topic][partition])
            for topic, parts in ends.items()
            for partition, end in parts.items()
        )

    def wait_mirrored(self, flow: str, topics: Sequence[str], seconds: float = 120) -> None:
        """Wait until the flow has committed everything."""
        wait(f"{flow} mirrored", lambda: self.lag(flow, topics) == 0, seconds)

    def acknowledged(self, directory: str, pattern: str = "*.tsv") -> int:
        """Count the log lines of a directory on the host of the producer."""
        return acknowledged(self.desk, directory, pattern)

    @contextmanager
    def producing(
        self, *topics: str, cluster: str = "east", **options: object
    ) -> Iterator[Production]:
        """Keep a producer writing until the block ends."""
        production = self.start_producer(*topics, cluster=cluster, **options)
        try:
            yield production
        finally:
            production.stop()

    def start_producer(self, *topics: str, cluster: str = "east", **options: object) -> Production:
        """Start a producer; options are those of ``lab/tools/produce.py``."""
        arguments = [part for topic in topics for part in ("--topic", topic)]
        for name, value in options.items():
            arguments += [f"--{name}", *([] if value is True else [str(value)])]
        directory = f"{ACKS}/{cluster}/{topics[0]}"
        return Production(self.desk, self.connection(cluster), arguments, directory)

    def produce(self, *topics: str, count: int, cluster: str = "east", **options: object) -> None:
        """Write a number of records and wait for their acknowledgement."""
        self.start_producer(*topics, cluster=cluster, count=count, **options).finish()

    def compare(self, topic: str, source: str = "east", prefix: str = "") -> dict[str, Any]:
        """Compare what arrived of a topic with everything a source acknowledged for it.

        :param prefix: stands before the topic's name on the target.
        """
        argv = [PYTHON, f"{TOOLS}/verify.py", "--topic", topic, f"--prefix={prefix}"]
        argv += ["--directory", f"{ACKS}/{source}/{topic}"]
        done = self.desk.run(*argv, stdin=json.dumps(self.connection("west")), check=False)
        assert done.status in {0, 1}, f"nothing to compare for {topic}: {done.text}"
        answer: dict[str, Any] = json.loads(done.stdout)[topic]
        return answer

    def report(self, command: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run ``mirror-report <command> --json``; returns exit status and document."""
        done = self.desk.run("mirror-report", command, "--json", *arguments, check=False)
        try:
            document: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"mirror-report {command}: {done.status} {done.text}") from None
        return done.status, document

    def playbook(
        self,
        name: str | Path,
        variables: Variables | None = None,
        *arguments: str,
        check: bool = True,
    ) -> Result:
        """Run one playbook of the repository, or a file, against this scenario's hosts."""
        argv = [
            "ansible-playbook",
            "--inventory",
            str(self.inventory),
            "--extra-vars",
            json.dumps(variables or {}),
            *arguments,
            str(ROOT / "playbooks" / name),
        ]
        environment = {
            **ENVIRONMENT,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_FORCE_COLOR": "0",  # Molecule asks for colours
            "ANSIBLE_INJECT_FACT_VARS": "false",
        }
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=environment,
            timeout=HUNG_SECONDS,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        if check:
            assert result.status == 0, result.text[-6000:]
        return result
