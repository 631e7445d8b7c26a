"""A TCP proxy in user space that delays every byte, both ways: a distant cluster on loopback."""

from __future__ import annotations

import asyncio
import sys

CHUNK = 256 * 1024


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Forward what arrives after a delay, in order, without a limit on what is in flight."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def send() -> None:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            writer.write(data)
            await writer.drain()
            if not data:
                return

    sender = asyncio.create_task(send())
    try:
        while data := await reader.read(CHUNK):
            queue.put_nowait((loop.time() + delay, data))
        queue.put_nowait((loop.time() + delay, b""))
        await sender
    except OSError:
        sender.cancel()
    finally:
        writer.close()


async def serve(port: int, to: int, round_trip: float) -> None:
    """Proxy one port of 127.0.0.1 to another.

    :param round_trip: seconds.
    """

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            pump(reader, there[1], round_trip / 2), pump(there[0], writer, round_trip / 2)
        )

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
