"""Text that other programs read back: Java properties, systemd environment files, JAAS values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .keys import ModelError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
_MODULES = {
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
}


def text_of(name: str, value: Any) -> str:
    """The text of one scalar or list as Kafka's parsers read it.

    :param name: what the value belongs to, for the message.
    :param value: str, bool, int, float or a list of these.
    :returns: booleans in lower case, lists joined by commas.
    :raises ModelError: a map or another type.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(name, item) for item in value)
    raise ModelError(f"{name}: a value is text, a number, a boolean or a list of these")


def to_java_properties(properties: Mapping[str, Any]) -> str:
    """Lines that ``java.util.Properties.load`` turns back into exactly these properties.

    :param properties: name to value; ``None`` leaves the name out.
    :returns: ``name=value`` lines sorted by name, ASCII alone (a subset of ISO-8859-1).
    :raises ModelError: an empty name or a value that is neither scalar nor list.

    Format: class documentation of ``java.util.Properties`` (Java 17).
    """
    lines = []
    for name in sorted(properties):
        if not isinstance(name, str) or not name:
            raise ModelError("properties: a property needs a name that is text")
        if properties[name] is not None:
            value = _escaped(text_of(name, properties[name]), "")
            if value.startswith(" "):
                value = "\\" + value
            lines.append(f"{_escaped(name, ' :=#!')}={value}\n")
    return "".join(lines)


def _escaped(text: str, special: str) -> str:
    parts = []
    for char in text:
        if char in _SHORT:
            parts.append(_SHORT[char])
        elif char in special:
            parts.append("\\" + char)
        elif " " <= char <= "~":
            parts.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass").hex().upper()
            parts.extend(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
    return "".join(parts)


def in_url(address: str) -> str:
    """A host's name or address as URLs have it: IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address


def to_environment_file(variables: Mapping[str, Any]) -> str:
    """Lines that systemd's ``EnvironmentFile=`` turns back into exactly these variables.

    :param variables: name to value; ``None`` leaves the name out.
    :returns: ``NAME="value"`` lines sorted by name.
    :raises ModelError: a name no shell knows, a control character (a line ends the assignment).
    """
    lines = []
    for name in sorted(variables):
        if variables[name] is None:
            continue
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ModelError(f"environment variable '{name}': letters, digits and '_' only")
        value = text_of(name, variables[name])
        if any((char < " " and char != "\t") or char == "\x7f" for char in value):
            raise ModelError(f"environment variable {name}: control characters cannot be passed on")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise ModelError(f"environment variable {name}: the value is not valid Unicode")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{name}="{escaped}"\n')
    return "".join(lines)


def to_jaas(identity: Mapping[str, Any]) -> str:
    """The value of ``sasl.jaas.config`` for one identity.

    :param identity: sasl_mechanism, username and password of ``kafka_clusters``.
    :returns: one line; SECRET.
    :raises ModelError: an unknown mechanism, or a character the login parser cannot carry; the
        message never quotes the password.
    """
    mechanism = identity.get("sasl_mechanism")
    if mechanism not in _MODULES:
        raise ModelError(f"sasl_mechanism: '{mechanism}' is not one of {', '.join(_MODULES)}")
    user, password = _login(identity)
    return f'{_MODULES[mechanism]} required username="{user}" password="{password}";'


def to_plain_users(identities: Sequence[Mapping[str, Any]]) -> str:
    """The value of a broker's ``plain.sasl.jaas.config``: everyone who may log in with PLAIN.

    :param identities: username and password of each.
    :returns: one line; SECRET.
    :raises ModelError: as of :func:`to_jaas`.
    """
    users = "".join(f' "user_{user}"="{password}"' for user, password in map(_login, identities))
    return f"{_MODULES['PLAIN']} required{users};"


def _login(identity: Mapping[str, Any]) -> tuple[str, str]:
    """User name and password as they stand between double quotes."""
    escaped = []
    for key in ("username", "password"):
        value = identity.get(key)
        if not isinstance(value, str) or not value:
            raise ModelError(f"{key}: a login needs it as non-empty text (quote numbers)")
        if any(char in value for char in "\n\r\0"):
            raise ModelError(f"{key}: a line break or NUL cannot be used; choose another {key}")
        escaped.append(value.replace("\\", "\\\\").replace('"', '\\"'))
    return escaped[0], escaped[1]
