"""Where a process finds its things: the same process runs on a host or elsewhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PLACES = ("configuration", "credentials", "runtime", "logs", "scratch")
_PLACE = re.compile(r"\{(" + "|".join(PLACES) + r")\}")


class Placed(str):
    """Text in which ``{configuration}`` and the other places stand for paths of a layout."""

    __slots__ = ()


@dataclass(frozen=True)
class Layout:
    """Paths of one process; ``{name}`` is its name.

    :param configuration: directory of its files.
    :param credentials: directory in which it finds its credentials.
    :param runtime: directory of what is made at each start.
    :param logs: directory for logs that are files.
    :param scratch: directory for temporary files.
    :param variable: how an argument names a variable of the environment.
    """

    configuration: str
    credentials: str
    runtime: str
    logs: str
    scratch: str
    variable: str

    def put(self, name: str, value: Any) -> Any:
        """A value of a process, with this layout's paths; other values as they are.

        :param name: of the process.
        :param value: text, a list, a map, or anything else.
        """
        if isinstance(value, Placed):
            paths = {place: getattr(self, place).replace("{name}", name) for place in PLACES}
            return _PLACE.sub(lambda match: paths[match.group(1)], value)
        if isinstance(value, (list, tuple)):
            return [self.put(name, item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.put(name, item) for key, item in value.items()}
        return value

    def path(self, name: str, file: str) -> str:
        """Where a process has one of its files."""
        return f"{self.configuration.replace('{name}', name)}/{file}"

    def refer(self, variable: str) -> str:
        """What an argument holds that is the value of a variable of the environment."""
        return self.variable.replace("{name}", variable)


HOST = Layout(
    configuration="/etc/{name}",
    credentials="/run/credentials/{name}.service",
    runtime="/run/{name}",
    logs="/var/log/{name}",
    scratch="/var/cache/{name}",
    variable="${{name}}",
)
