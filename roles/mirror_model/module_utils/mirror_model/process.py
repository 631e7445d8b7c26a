"""One JVM that mirrors, whatever starts it and wherever its files lie."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import tuned
from .keys import Flow
from .layout import Layout, Placed
from .owners import Owner
from .render import to_java_properties

# Java's classes, compiled code and threads (docs/sizing.md).
BESIDE_HEAP_MIB = 512
# Kafka 3.x logs with log4j 1, 4.x with log4j 2: the file, and the option that names it.
LOGGING = {
    "3": ("log4j.properties", "-Dlog4j.configuration=file:"),
    "4": ("log4j2.yaml", "-Dlog4j2.configurationFile="),
}


@dataclass(frozen=True)
class Runtime:
    """The Kafka and the Java that run a process, and how a site starts them.

    :param kafka: directory of the release.
    :param java: directory of Java.
    :param options: of the JVM, beside what the process needs itself.
    :param performance_options: the collector, in the place of what Kafka's script chooses.
    :param environment: further variables; they win.
    """

    kafka: str
    java: str
    options: Sequence[str] = ()
    performance_options: Sequence[str] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Process:
    """A mirror process, or a worker of a Connect cluster. Paths are places of a layout.

    :param owner: the instance or Connect cluster that it is of.
    :param engine: name of its engine, ``title`` as a person reads it.
    :param kafka_version: the release it runs from.
    :param flows: filled in; ``target`` is the cluster that it writes to.
    :param description: what it mirrors, in a few words.
    :param positions: words for where the mirror's positions are kept.
    :param identity: what must not change unnoticed.
    :param heap: as an inventory spells it.
    :param script: the program, below Kafka's ``bin``.
    :param arguments: option (or nothing) and the variable that holds its value.
    :param environment: the variables that the arguments name.
    :param properties: file name to properties, secrets as references.
    :param texts: file name to text that is no properties.
    :param jvm_options: beside the heap.
    :param peers: whether its nodes on several hosts reach each other at their addresses.
    :param prepare: script that runs before the process; empty: none.
    :param credentials: file name to content, SECRET.
    """

    owner: Owner
    engine: str
    title: str
    kafka_version: str
    flows: Sequence[Flow] = ()
    target: str = ""
    description: str = ""
    positions: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)
    heap: str = "0m"
    script: str = ""
    arguments: Sequence[tuple[str, str]] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    jvm_options: Sequence[str] = ()
    prepare: str = ""
    peers: bool = False
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Its name, and that of its unit, its user and its directories."""
        return self.owner.name

    @property
    def state(self) -> str:
        """started, stopped or absent."""
        return self.owner.state

    @property
    def memory_mib(self) -> int:
        """What it may hold in all: its heap, half of it for buffers outside, and Java itself."""
        return tuned.heap_mib(self.heap) * 3 // 2 + BESIDE_HEAP_MIB

    @property
    def secrets(self) -> dict[str, str]:
        """The credentials that it reads itself, SECRET: a raw password is in its JAAS value."""
        return {k: v for k, v in self.credentials.items() if not k.endswith(".password")}

    @property
    def logging(self) -> str:
        """Name of the file that says what is logged."""
        return LOGGING[self.kafka_version.partition(".")[0]][0]

    def placed(self, layout: Layout) -> "Process":
        """The same process with the paths of a layout."""
        return replace(
            self,
            environment=layout.put(self.name, self.environment),
            properties=layout.put(self.name, self.properties),
            texts=layout.put(self.name, self.texts),
            jvm_options=layout.put(self.name, self.jvm_options),
        )

    def files(self, layout: Layout) -> dict[str, str]:
        """Its properties and texts.

        :returns: path to text; secrets as references that this layout resolves.
        """
        placed = self.placed(layout)
        rendered = {
            file: to_java_properties(properties)
            for file, properties in sorted(placed.properties.items())
        }
        texts = rendered | dict(sorted(placed.texts.items()))
        return {layout.path(self.name, file): text for file, text in texts.items()}

    def command(self, layout: Layout, runtime: Runtime) -> list[str]:
        """The script and its arguments, an option together with its value."""
        arguments = [
            f"{option} {layout.refer(variable)}".lstrip() for option, variable in self.arguments
        ]
        return [f"{runtime.kafka}/bin/{self.script}", *arguments]

    def variables(self, layout: Layout, runtime: Runtime) -> dict[str, Any]:
        """Every variable of its environment; later ones win."""
        placed = self.placed(layout)
        _, option = LOGGING[self.kafka_version.partition(".")[0]]
        scratch = layout.put(self.name, Placed("{scratch}"))
        return {
            "JAVA_HOME": runtime.java,
            "KAFKA_HEAP_OPTS": f"-Xms{self.heap} -Xmx{self.heap}",
            "KAFKA_JVM_PERFORMANCE_OPTS": " ".join(
                [*runtime.performance_options, "-Djava.awt.headless=true"]
            ),
            "KAFKA_OPTS": " ".join(
                [*runtime.options, *placed.jvm_options, f"-Djava.io.tmpdir={scratch}"]
            ),
            "KAFKA_LOG4J_OPTS": option + layout.path(self.name, self.logging),
            "LOG_DIR": layout.put(self.name, Placed("{logs}")),
            **placed.environment,
            **runtime.environment,
        }
