"""Scripts of the real distribution: each takes the two options that kafka-as gives it."""

from __future__ import annotations

import zipfile
from pathlib import Path

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


def test_every_script_knows_the_two_options(release: Path) -> None:
    assert set(OPTIONS) == set(program.SCRIPTS)
    texts: dict[str, set[str]] = {}
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
                    texts.setdefault(name, set()).update(constants(archive.read(member)))
    for name in program.SCRIPTS:
        for option in ("bootstrap-server", "command-config"):
            assert {option, f"--{option}"} & texts[name], f"{name}: {option}"
