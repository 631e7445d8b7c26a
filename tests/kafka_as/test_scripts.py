"""Scripts of the real distribution: each takes the two options that kafka-as gives it."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from tests.kafka_as.installed import program
from tests.kafka_as.options import OPTIONS, TOOLS


def constants(data: bytes) -> set[str]:
    """The texts in the constant pool of a Java class."""
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4,
             18: 4, 19: 2, 20: 2}  # fmt: skip
    count, place, entry, texts = int.from_bytes(data[8:10], "big"), 10, 1, set()
    while entry < count:
        tag, place = data[place], place + 1
        if tag == 1:
            length = int.from_bytes(data[place : place + 2], "big")
            texts.add(data[place + 2 : place + 2 + length].decode("utf-8", "replace"))
            place += 2 + length
        else:
            place += sizes[tag]
        entry += 2 if tag in (5, 6) else 1
    return texts


@pytest.fixture(scope="module")
def texts(release: Path) -> dict[str, set[str]]:
    """Script to the texts of the classes that define its options."""
    assert set(OPTIONS) == set(program.SCRIPTS)
    found: dict[str, set[str]] = {}
    wanted = {
        name: f"{options}.class" if options.startswith("kafka/") else f"{TOOLS}/{options}.class"
        for name, options in OPTIONS.items()
    }
    for jar in (release / "libs").glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as archive:
            inside = set(archive.namelist())
            for name, path in wanted.items():
                # Options of a class may be defined in the outer class.
                for member in {
                    path,
                    path.partition("$")[0].removesuffix(".class") + ".class",
                } & inside:
                    found.setdefault(name, set()).update(constants(archive.read(member)))
    return found


def test_every_script_knows_the_two_options(texts: dict[str, set[str]]) -> None:
    for name in program.SCRIPTS:
        for option in ("bootstrap-server", "command-config"):
            assert {option, f"--{option}"} & texts[name], f"{name}: {option}"


LOCAL = re.compile(r"(file|config|property|properties|props|serializer|formatter|reader|strategy)$")
# Options about the cluster alone, a group's beginning, and texts that are no options.
REMOTE = {"config", "add-config", "delete-config", "offset-reset-strategy"}
NO_OPTIONS = {
    "deserializer", "key.deserializer", "key.serializer", "partition.assignment.strategy", "props",
    "properties", "reader", "serializer", "value.deserializer", "value.serializer",
}  # fmt: skip


def test_every_option_that_names_something_of_the_host_is_known(
    texts: dict[str, set[str]],
) -> None:
    options = {
        text.removeprefix("--")
        for some in texts.values()
        for text in some
        if re.fullmatch(r"(--)?[a-z]+([-.][a-z]+)*", text) and LOCAL.search(text)
    }
    unknown = options - program.LOCAL - program.CONNECTION - REMOTE - NO_OPTIONS
    assert unknown == set()
    assert program.LOCAL - options == set()
