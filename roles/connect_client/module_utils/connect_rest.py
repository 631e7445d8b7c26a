"""Kafka Connect's REST interface: one question at a time, to whichever worker answers."""

import base64
import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

OK, CREATED, ACCEPTED, NO_CONTENT = 200, 201, 202, 204
UNAUTHORIZED, NOT_FOUND, CONFLICT, UNAVAILABLE = 401, 404, 409, 503
REDIRECTS = (301, 302, 303, 307, 308)
# No answer of HTTP's; somebody is there all the same.
UNTRUSTED = 495
REQUEST_SECONDS = 30
# No answer of Connect's comes near it; whoever answers in its place may send without end.
MOST_BYTES = 32 * 2**20
PAUSE_SECONDS = 1.0


class RestError(Exception):
    """Connect does not do what it was asked; the message says what to do.

    :param status: what was answered; 0: nothing.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Answer:
    """What a worker answered."""

    status: int
    body: Any


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like others: the login belongs to the address that was asked."""

    def redirect_request(self, *_: Any) -> None:
        """Ask nobody else."""
        return


@dataclass(frozen=True)
class Connect:
    """A Connect cluster.

    :param urls: addresses of workers, of which one is enough.
    :param context: how a worker's certificate is verified; ``None`` for plain HTTP on this host.
    :param login: the header that says who asks; SECRET.
    :param patience: seconds to wait for workers that start or rebalance.
    :param lost: says why there is nothing to wait for; empty: there is.
    """

    urls: Sequence[str]
    context: ssl.SSLContext | None
    login: Mapping[str, str]
    patience: float
    lost: Callable[[], str] = str

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """Ask until it is answered.

        Workers that start answer 404 or 503, and all of them 409 while tasks move.

        :returns: what the answer holds.
        :raises RestError: refused, not answered in time, or nothing to wait for.
        """
        deadline = time.monotonic() + self.patience
        while True:
            answer = self._once(method, path, body, query)
            if isinstance(answer, Answer):
                if answer.status < 300:
                    return answer.body
                said = _said(answer.body)
                starting = answer.status == NOT_FOUND and not isinstance(answer.body, dict)
                if not (starting or answer.status in (CONFLICT, UNAVAILABLE)):
                    raise RestError(f"{method} {path}: {answer.status} {said}", answer.status)
                problem = f"{answer.status} {said}"
            else:
                problem = answer
            if time.monotonic() > deadline:
                raise RestError(
                    f"{method} {path}: no worker of {', '.join(self.urls)} did it within "
                    f"{self.patience:.0f} s: {problem}"
                )
            self.pause()

    def connectors(self, expand: str) -> dict[str, Any]:
        """Every connector of the cluster by its name.

        :param expand: what to tell of each, ``info`` or ``status``.
        :raises RestError: as for :meth:`ask`, or the answer is none of a worker's.
        """
        listed = self.ask("GET", "/connectors", expand=expand)
        with answer_of_a_worker():
            return {str(name): {**entry} for name, entry in listed.items()}

    def pause(self) -> None:
        """Wait a moment before the next question.

        :raises RestError: there is nothing to wait for.
        """
        if why := self.lost():
            raise RestError(why)
        time.sleep(PAUSE_SECONDS)

    def _once(self, method: str, path: str, body: Any, query: Mapping[str, str]) -> Answer | str:
        """One answer of the first worker that gives one, or why none did."""
        problem = "none is named"
        for url in self.urls:
            where = f"{url}{path}"
            if query:
                where += f"?{urllib.parse.urlencode(query)}"
            request = urllib.request.Request(  # noqa: S310  # the model lets http and https through
                where, method=method,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json", **self.login},
            )  # fmt: skip
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}),
                urllib.request.HTTPSHandler(context=self.context),
                _NoRedirect(),
            )
            try:
                return _answered(url, opener, request)
            except ssl.SSLCertVerificationError as error:
                raise RestError(_distrust(url, error), UNTRUSTED) from None
            except urllib.error.URLError as error:
                if isinstance(error.reason, ssl.SSLCertVerificationError):
                    raise RestError(_distrust(url, error.reason), UNTRUSTED) from None
                problem = f"{url}: {error.reason}"
            except OSError as error:
                problem = f"{url}: {error}"
            except http.client.HTTPException as error:
                problem = f"{url}: no answer of HTTP's ({type(error).__name__})"
        return problem


def _answered(
    url: str, opener: urllib.request.OpenerDirector, request: urllib.request.Request
) -> Answer:
    """What one worker answers.

    :raises RestError: it does not know who asks, sends elsewhere, or does not come to an end.
    """
    try:
        with opener.open(request, timeout=REQUEST_SECONDS) as answer:
            return Answer(answer.status, _parsed(_content(url, answer)))
    except urllib.error.HTTPError as error:
        if error.code == UNAUTHORIZED:
            raise RestError(
                f"{url}: 401: the workers do not know the user with this password; correct "
                "rest.client, or what rest.users says of it. Workers learn passwords when "
                "they start: to change one, add a user with the new password, let "
                "rest.client name it in the next run, and remove the old user in a third",
                UNAUTHORIZED,
            ) from None
        if error.code in REDIRECTS:
            raise RestError(
                f"{url}: {error.code}: a redirect, which is not followed, because the "
                "password would go with it; name the worker's own address",
                error.code,
            ) from None
        return Answer(error.code, _parsed(_content(url, error)))


@contextmanager
def answer_of_a_worker() -> Iterator[None]:
    """What is done with an answer inside the block needs it to be a worker's.

    :raises RestError: it is made in another way.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RestError(
            f"what is answered is no answer of a worker's ({type(error).__name__}: "
            f"{str(error)[:100]}); make sure that the address is that of a worker of Kafka Connect"
        ) from None


def _distrust(url: str, error: ssl.SSLCertVerificationError) -> str:
    return (
        f"{url}: its certificate is not trusted ({error.verify_message}); correct rest.ssl_ca, or "
        "the address, which has to stand in the certificate"
    )


def _content(url: str, answer: http.client.HTTPResponse | urllib.error.HTTPError) -> bytes:
    """The content of an answer.

    :raises RestError: it is longer than :data:`MOST_BYTES`.
    :raises http.client.IncompleteRead: it ends before its end.
    """
    content = answer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise RestError(
            f"{url}: answers with more than {MOST_BYTES // 2**20} MiB, which no worker does; make "
            "sure that it is the worker's address",
            answer.status or 0,
        )
    if getattr(answer, "length", 0):
        raise http.client.IncompleteRead(content)
    return content


def _parsed(content: bytes) -> Any:
    text = content.decode("utf-8", "replace")
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text


def _said(body: Any) -> str:
    """What Connect says of an error."""
    if isinstance(body, dict):
        return str(body.get("message") or body)
    return " ".join(str(body or "").split())[:200]


def first_cause(trace: str) -> str:
    """A failure's own words: the first line of a trace, and its first cause.

    :param trace: as Java prints it.
    """
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    first = lines[0] if lines else "no reason is given"
    return f"{first}; first cause: {causes[-1]}" if causes else first


def connected(given: Mapping[str, Any]) -> Connect:
    """A Connect cluster by a module's parameters.

    :param given: ``urls``, ``ca``, ``certificate`` and ``key`` (PEM text), ``username``,
        ``password`` and ``patience``.
    :raises RestError: no context can be made of the certificates.
    """
    login = {}
    if given["username"]:
        both = f"{given['username']}:{given['password'] or ''}".encode()
        login["Authorization"] = f"Basic {base64.b64encode(both).decode()}"
    urls = [url.rstrip("/") for url in given["urls"]]
    secured = any(url.startswith("https://") for url in urls)
    return Connect(urls, _context(given) if secured else None, login, given["patience"])


def _context(given: Mapping[str, Any]) -> ssl.SSLContext:
    """How certificates are verified, and which one is shown.

    :raises RestError: what is given is no PEM text, or the key is another certificate's.
    """
    try:
        context = ssl.create_default_context(cadata=given["ca"] or None)
        if given["certificate"]:
            # Python reads them from a file alone: one of this process, in no directory.
            with os.fdopen(os.memfd_create("certificate"), "w") as file:
                file.write(f"{given['key']}\n{given['certificate']}\n")
                file.flush()
                context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    except (ssl.SSLError, ValueError) as error:
        raise RestError(
            f"rest.ssl_ca, rest.ssl_certificate or rest.ssl_key cannot be used ({error}); give "
            "PEM text, and the key of that certificate"
        ) from None
    return context
