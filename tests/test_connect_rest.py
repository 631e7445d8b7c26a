"""How modules ask a REST interface that somebody else answers in the worker's place."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import connect_rest

from tests.loading import certificates as lab
from tests.playing import run_module

WORKERS = "roles/kafka_connect/library/connect_workers.py"
CONNECTOR = "roles/mirror_connectors/library/connect_connector.py"


class Impostor(ThreadingHTTPServer):
    """Answers every question in one way, and remembers what it was told."""

    def __init__(self, status: int, location: str = "", size: int = 2) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.status, self.location, self.size = status, location, size
        self.logins: list[str | None] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class Asked(BaseHTTPRequestHandler):
    """One question."""

    server: Impostor

    def do_GET(self) -> None:
        """Answer."""
        self.server.logins.append(self.headers["Authorization"])
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", str(self.server.size))
        self.end_headers()
        left = self.server.size
        try:
            while left > 0:
                left -= self.wfile.write(b" " * min(left, 2**20))
        except ConnectionError:
            return

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def answering(status: int, **how: Any) -> Iterator[Impostor]:
    with Impostor(status, **how) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def asked(url: str) -> dict[str, Any]:
    login = {"username": "deployer", "password": "deployer-secret-1"}
    return run_module(WORKERS, {"urls": [url], "patience": 1, **login})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_the_password_nowhere(status: int) -> None:
    with answering(200) as other, answering(status, location=f"{other.url}/connectors") as worker:
        message = asked(worker.url)["msg"]
    assert worker.logins
    assert other.logins == []
    assert f"{worker.url}: {status}: a redirect, which is not followed" in message


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with answering(200, size=40 * 2**20) as worker:
        assert "answers with more than 32 MiB" in asked(worker.url)["msg"]
    with answering(500, size=40 * 2**20) as worker:
        assert "answers with more than 32 MiB" in asked(worker.url)["msg"]


def test_a_client_key_lies_in_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.ensure(tmp_path, lab.Wanted("client", hosts=["client"]))
    certificate, key = ((tmp_path / f"client.{kind}").read_text() for kind in ("pem", "key"))
    loaded: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def seen(context: ssl.SSLContext, file: str, *more: Any) -> None:
        loaded.append(str(Path(file).readlink()))
        load(context, file, *more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", seen)
    given = {
        "urls": ["https://worker:8084"], "ca": certificate, "certificate": certificate,
        "key": key, "username": None, "password": None, "patience": 0,
    }  # fmt: skip
    assert connect_rest.connected(given).context is not None
    [place] = loaded
    assert place.startswith("/memfd:")


class Mumbling(socketserver.BaseRequestHandler):
    """Answers as no server of HTTP does."""

    server: Mumblers

    def handle(self) -> None:
        """Answer."""
        self.request.recv(65536)
        self.request.sendall(self.server.said)


class Mumblers(socketserver.ThreadingTCPServer):
    """Says the same to everybody, byte by byte as given."""

    daemon_threads = True

    def __init__(self, said: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Mumbling)
        self.said = said


HEAD = b"HTTP/1.1 200 OK\r\n"
BAD = {
    "no HTTP": b"\x15\x03\x03\x00\x02\x02\x50",
    "a header that is none": HEAD + b"x" * 70_000 + b"\r\n\r\n",
    "too many headers": HEAD + b"a: b\r\n" * 200 + b"\r\n",
    "an end before the end": HEAD + b"Content-Length: 100\r\n\r\n{",
    "an error that ends before its end": b"HTTP/1.1 500 E\r\nContent-Length: 100\r\n\r\n{",
    "chunks that are none": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
}
BODIES = {
    "a list": b'["orders-source"]',
    "an empty list": b"[]",
    "a text": b"hello",
    "nothing": b"",
    "a number": b"7",
    "no state": b'{"orders-source": {}}',
    "a state that is none": b'{"orders-source": {"status": [], "info": []}}',
    "tasks that are none": b'{"a": {"status": {"connector": {"state": "RUNNING"}, "tasks": 1}}}',
    "deeper than can be read": b"[" * 200_000,
    "a number longer than can be read": b"1" * 20_000,
}


def said(answer: bytes) -> tuple[str, str]:
    """What both modules say of an answer."""
    with Mumblers(answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urls = [f"http://127.0.0.1:{server.server_address[1]}"]
        wanted = {"name": "a", "config": {"connector.class": "b"}}
        kept = {"connectors": [wanted], "mark": "m", "urls": urls, "patience": 0}
        found = run_module(WORKERS, {"urls": urls, "patience": 0}), run_module(CONNECTOR, kept)
        server.shutdown()
    assert all(answered["failed"] for answered in found)
    return found[0]["msg"], found[1]["msg"]


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_what_is_no_http_is_told_as_such(answer: bytes) -> None:
    for message in said(answer):
        assert "no answer of HTTP's" in message


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_answer_that_no_worker_gives_is_told_as_such(body: bytes) -> None:
    answer = HEAD + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
    for message in said(answer):
        assert "is no answer of a worker's" in message


def test_nothing_is_waited_for_when_it_is_lost() -> None:
    given = {"urls": ["http://127.0.0.1:9"], "patience": 100}
    lost = ["sh", "-c", "echo its process ended 3 times, exit status 1"]
    answered = run_module(WORKERS, {**given, "lost": lost})
    assert answered["msg"] == "its process ended 3 times, exit status 1"
    unknown = run_module(WORKERS, {**given, "patience": 2, "lost": ["sh", "-c", "echo x; exit 3"]})
    assert "no worker of http://127.0.0.1:9 did it within 2 s" in unknown["msg"]


@pytest.mark.parametrize("given", [{"ca": "no PEM"}, {"certificate": "no PEM", "key": "none"}])
def test_a_certificate_that_is_none_is_told_as_such(given: dict[str, str]) -> None:
    answered = run_module(WORKERS, {"urls": ["https://127.0.0.1:9"], "patience": 0, **given})
    assert "rest.ssl_key cannot be used" in answered["msg"]
