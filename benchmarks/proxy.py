"""A TCP proxy in user space that delays every byte, both ways: a distant cluster on loopback.

What arrives stays in the kernel, in pipes, until it is due: so the proxy takes little of the
processor, which it shares with what is measured.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import socket
import sys
from collections import deque
from contextlib import suppress

CHUNK = 1 << 20
LOOPBACK = "127.0.0.1"


class Pipe:
    """A pipe that holds what is on the way."""

    def __init__(self) -> None:
        self.end, self.begin = os.pipe()
        fcntl.fcntl(self.begin, fcntl.F_SETPIPE_SZ, CHUNK)

    def close(self) -> None:
        """Drop what it holds."""
        os.close(self.end)
        os.close(self.begin)


IDLE: list[Pipe] = []


class Way:
    """One direction of a connection: forwards what arrives after a delay, in order.

    There is no limit on what is on the way.

    :param delay: seconds.
    """

    def __init__(self, source: socket.socket, sink: socket.socket, delay: float) -> None:
        self._source, self._sink, self._delay = source, sink, delay
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, Pipe, int]] = deque()
        self.ended = self._loop.create_future()
        self._loop.add_reader(source, self._read)

    def _read(self) -> None:
        pipe = IDLE.pop() if IDLE else Pipe()
        try:
            size = os.splice(self._source.fileno(), pipe.begin, CHUNK, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            IDLE.append(pipe)
            return
        except OSError:
            size = 0
        if not size:
            self._loop.remove_reader(self._source)
        due = self._loop.time() + self._delay
        self._waiting.append((due, pipe, size))
        self._loop.call_at(due, self._write)

    def _write(self) -> None:
        if self.ended.done():
            return
        while self._waiting and self._waiting[0][0] <= self._loop.time():
            due, pipe, size = self._waiting.popleft()
            if not size:
                IDLE.append(pipe)
                self._end()
                return
            try:
                sent = os.splice(pipe.end, self._sink.fileno(), size, flags=os.SPLICE_F_NONBLOCK)
            except BlockingIOError:
                sent = 0
            except OSError:
                pipe.close()
                self._end()
                return
            if sent == size:
                IDLE.append(pipe)
                continue
            self._waiting.appendleft((due, pipe, size - sent))
            if not sent:
                self._loop.add_writer(self._sink, self._write)
                return
        self._loop.remove_writer(self._sink)

    def _end(self) -> None:
        """Tell the other side that nothing more comes."""
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)
        with suppress(OSError):
            self._sink.shutdown(socket.SHUT_WR)
        for _, pipe, _ in self._waiting:
            pipe.close()
        self._waiting.clear()
        self.ended.set_result(None)


async def connected(here: socket.socket, to: int, round_trip: float) -> None:
    """Forward one connection until both sides have ended it."""
    loop = asyncio.get_running_loop()
    with here, socket.socket() as there:
        for each in (here, there):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await loop.sock_connect(there, (LOOPBACK, to))
        except OSError:
            return
        ways = Way(here, there, round_trip / 2), Way(there, here, round_trip / 2)
        await asyncio.gather(*(way.ended for way in ways))


async def serve(port: int, to: int, round_trip: float) -> None:
    """Proxy one port of 127.0.0.1 to another.

    :param round_trip: seconds.
    """
    loop = asyncio.get_running_loop()
    running: set[asyncio.Task[None]] = set()
    with socket.create_server((LOOPBACK, port)) as server:
        server.setblocking(False)
        while True:
            here, _ = await loop.sock_accept(server)
            task = asyncio.create_task(connected(here, to, round_trip))
            running.add(task)
            task.add_done_callback(running.discard)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
