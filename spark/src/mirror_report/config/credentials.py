"""Secrets: from standard input, or from the files that systemd puts into a directory."""

from collections.abc import Mapping
from pathlib import Path

from mirror_report.config.errors import ConfigError


class Credentials:
    """Named secrets; nothing but :meth:`read` ever shows one.

    :param values: name -> secret, from standard input.
    :param directory: where systemd put the secret files.
    """

    def __init__(
        self, values: Mapping[str, str] | None = None, directory: Path | None = None
    ) -> None:
        self._values = dict(values or {})
        self.directory = directory

    def __repr__(self) -> str:
        return "Credentials(<hidden>)"

    def read(self, name: str) -> str:
        """One secret in clear.

        :param name: for example ``east.report.password``.
        :raises ConfigError: it is in neither place, or cannot be read.
        """
        if name in self._values:
            return self._values[name]
        if self.directory is None:
            raise ConfigError(
                f"no credential {name!r}: this command needs it",
                "Run `mirror-report` through its wrapper (as root, it loads the credentials), or "
                "pass a `credentials` map with `--config -`",
            )
        try:
            return (self.directory / name).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"credential {name!r} cannot be read from {self.directory}: {error.strerror}",
                "Deploy the report again: the role writes and loads it",
            ) from error
