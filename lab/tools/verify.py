#!/usr/bin/env python3
"""Read topics wholly from a cluster and compare them with the logs of acknowledged records.

Runs on a lab host; the connection comes as JSON on standard input or in a file; the answer is one
JSON document on standard output: per topic the numbers acknowledged, found, lost, duplicated,
altered, foreign and moved to another partition (which leaves a topic whole).
Exit status 1 if a topic is not whole (duplicates alone leave it whole), 2 if nothing was
acknowledged for a topic: an empty comparison proves nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import client
from ledger import Acknowledged, compare, from_lines


def entries(directories: list[Path]) -> Iterator[Acknowledged]:
    """Yield every entry of every log in the directories."""
    for directory in directories:
        for log in sorted(directory.glob("*.tsv")):
            with log.open(encoding="ascii") as lines:
                yield from from_lines(lines)


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", action="append", required=True, help="repeat for several")
    parser.add_argument("--prefix", default="", help="what stands before the names on this cluster")
    parser.add_argument("--directory", type=Path, action="append", required=True)
    parser.add_argument("--connection", default="-", help="JSON file; -: standard input")
    options = parser.parse_args()
    connection = client.connection(options.connection)
    wanted = (entry for entry in entries(options.directory) if entry.topic in options.topic)
    there = client.read(connection, [options.prefix + topic for topic in options.topic])
    found = (
        dataclasses.replace(placed.found(), topic=placed.topic.removeprefix(options.prefix))
        for placed in there
    )
    comparisons = compare(options.topic, wanted, found)
    print(json.dumps({each.topic: dataclasses.asdict(each) for each in comparisons}))
    if not all(each.acknowledged for each in comparisons):
        return 2
    return 0 if all(each.whole for each in comparisons) else 1


if __name__ == "__main__":
    sys.exit(main())
