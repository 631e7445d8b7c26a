#!/usr/bin/env python3
"""Keep writing records to a cluster and log every one that it acknowledges.

Runs on a lab host. The connection comes by standard input or file: no password is ever in argv.
One idempotent producer per process; each writes its own log ``<directory>/<run>-<process>.tsv``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import signal
import sys
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import client
from ledger import KINDS, PLAIN_KINDS, Acknowledged, Record, checksum, make, to_line

PROGRESS_SECONDS = 5.0
IN_FLIGHT = 20000


class Stop:
    """Turns TERM and INT into a flag; what was sent is still flushed and logged."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request)

    def _request(self, *_: object) -> None:
        self.requested = True


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", action="append", required=True, help="repeat for several")
    parser.add_argument("--directory", type=Path, required=True, help="where the logs go")
    parser.add_argument("--run", default=secrets.token_hex(4), help="eight hex digits")
    parser.add_argument("--count", type=int, help="records in all; default: no end")
    parser.add_argument("--duration", type=float, help="seconds; default: no end")
    parser.add_argument("--rate", type=float, help="records a second in all; default: no bound")
    parser.add_argument("--keys", type=int, help="every record gets one of so many keys")
    parser.add_argument(
        "--plain",
        action="store_true",
        help="neither headers nor idempotence: topics in formats before 0.11 take none",
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--connection", default="-", help="JSON file; -: standard input")
    return parser.parse_args(arguments)


class Writer:
    """One producer, its open futures and its log."""

    def __init__(self, connection: dict[str, Any], log: Path, *, idempotent: bool) -> None:
        self.producer = client.producer(connection, idempotent=idempotent)
        self.log = log.open("w", encoding="ascii")
        self.open: deque[tuple[Any, str, Record]] = deque()
        self.acknowledged = 0
        self.failed = 0

    def send(self, topic: str, sequence: str, record: Record) -> None:
        """Send one record and log what has been acknowledged meanwhile."""
        self.open.append((client.send(self.producer, topic, record), sequence, record))
        if len(self.open) % 256 == 0:
            self.drain()
        while len(self.open) > IN_FLIGHT:
            time.sleep(0.005)
            self.drain()

    def drain(self) -> None:
        """Log finished records; the log is flushed, so that readers see whole lines early."""
        while self.open and self.open[0][0].is_done:
            future, sequence, record = self.open.popleft()
            if future.failed():
                self.failed += 1
                continue
            place = future.value
            entry = Acknowledged(
                sequence,
                place.topic,
                place.partition,
                place.offset,
                place.timestamp,
                record.key,
                checksum(record),
            )
            self.log.write(to_line(entry))
            self.acknowledged += 1
        self.log.flush()

    def close(self) -> None:
        """Send what is buffered, log the rest and end."""
        self.producer.flush(timeout=120)
        self.drain()
        self.failed += len(self.open)
        self.producer.close(timeout=10)
        self.log.close()


def work(options: argparse.Namespace, connection: dict[str, Any], process: int) -> int:
    """Write one process's share; returns the exit status."""
    stop = Stop()
    log = options.directory / f"{options.run}-{process}.tsv"
    writer = Writer(connection, log, idempotent=not options.plain)
    share = options.processes
    limit = None
    if options.count is not None:
        limit = options.count // share + (process < options.count % share)
    rate = options.rate / share if options.rate else None
    began = said = time.monotonic()
    number = 0
    while not stop.requested and (limit is None or number < limit):
        now = time.monotonic()
        if options.duration and now - began >= options.duration:
            break
        if rate and number > (now - began) * rate:
            writer.drain()
            time.sleep(0.01)
            continue
        sequence = f"{options.run}-{process}-{number}"
        topic = options.topic[number // KINDS % len(options.topic)]
        # The first kinds have no headers.
        kind = number // PLAIN_KINDS * KINDS + number % PLAIN_KINDS if options.plain else number
        record = make(sequence, kind, int(time.time() * 1000))
        if options.keys:
            record = replace(record, key=b"key-%04d" % (number % options.keys))
        writer.send(topic, sequence, record)
        number += 1
        if now - said >= PROGRESS_SECONDS:
            said = now
            print(f"process {process}: {writer.acknowledged} acknowledged", flush=True)
    writer.close()
    seconds = time.monotonic() - began
    print(
        f"process {process}: {writer.acknowledged} acknowledged, {writer.failed} failed,"
        f" {seconds:.1f} s",
        flush=True,
    )
    return 1 if writer.failed else 0


def main() -> int:
    """Start the processes, pass signals on, wait for all."""
    options = parse()
    connection = client.connection(options.connection)
    options.directory.mkdir(parents=True, exist_ok=True)
    (options.directory / f"{options.run}.pid").write_text(str(os.getpid()), encoding="ascii")
    if options.processes == 1:
        return work(options, connection, 0)
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_child, args=(options, connection, process))
        for process in range(options.processes)
    ]
    for worker in workers:
        worker.start()

    def forward(number: int, _: object) -> None:
        for worker in workers:
            if worker.pid and worker.is_alive():
                os.kill(worker.pid, number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    for worker in workers:
        worker.join()
    return max(abs(worker.exitcode or 0) for worker in workers)


def _child(options: argparse.Namespace, connection: dict[str, Any], process: int) -> None:
    sys.exit(work(options, connection, process))


if __name__ == "__main__":
    sys.exit(main())
