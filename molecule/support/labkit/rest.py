"""Questions to a worker's REST server, asked on a host with curl, as an operator asks them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from labkit.lab import Lab

CA = "/tmp/rest.ca.pem"  # noqa: S108  # on a host of the lab
CERTIFICATE = "/tmp/rest.pem"  # noqa: S108
CURL = ("curl", "--silent", "--show-error", "--max-time", "30", "--write-out", "\n%{http_code}")


@dataclasses.dataclass(frozen=True)
class Rest:
    """The REST servers of the scenario, seen from the report's host."""

    lab: Lab

    def ask(
        self,
        path: str,
        *,
        worker: str = "connect1",
        user: str | None = "deployer",
        password: str | None = None,
        authority: str | None = None,
        certificate: str = "",
        method: str = "GET",
        body: Any = None,
    ) -> tuple[int, Any]:
        """Status and body of an answer; curl's own exit status, negative, where there is none.

        :param user: ``None``: asks without a password.
        :param password: another than the right one.
        :param authority: PEM text of another than the right one.
        :param certificate: that the caller shows, with its key, as PEM text.
        """
        desk = self.lab.desk
        desk.write(CA, authority or self.lab.authority())
        options = ["--cacert", CA, "--request", method]
        if certificate:
            desk.write(CERTIFICATE, certificate)
            options += ["--cert", CERTIFICATE]
        if body is not None:
            options += ["--header", "Content-Type: application/json", "--data", json.dumps(body)]
        secret = ""
        if user is not None:
            right = self.lab.passwords["west"]["report"]
            secret = f"user = {json.dumps(f'{user}:{password or right}', ensure_ascii=False)}\n"
        argv = (*CURL, *options, "--config", "-", f"https://{worker}:8084{path}")
        done = desk.run(*argv, stdin=secret, check=False)
        if done.status:
            return -done.status, done.text
        text, _, status = done.stdout.rpartition("\n")
        try:
            return int(status), json.loads(text) if text else None
        except ValueError:
            return int(status), text
