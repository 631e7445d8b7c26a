"""How modules ask a REST interface that somebody else answers in the worker's place."""

from __future__ import annotations

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
    with connect_rest.connected(given) as connect:
        assert connect.context is not None
    [place] = loaded
    assert place.startswith("/memfd:")
