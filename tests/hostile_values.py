"""Values that break careless renderers; every reader must return them unchanged.

The tables are shared: Java's ``Properties``, Kafka's login parser and systemd read them in the unit
tests and in the Molecule scenario.
"""

from __future__ import annotations

import json

# Any text may be the value of a property, or its name.
PROPERTIES: dict[str, str] = {
    "plain": "value",
    "empty": "",
    "backslash": r"prd-(a|b)\..*",
    "trailing backslash": "C:\\",
    "escape look-alikes": r"\n \t \u0041 \\",
    "equals and colon": "a=b:c",
    "comment signs": "#not a comment!",
    "leading blanks": "   three",
    "trailing blanks": "three   ",
    "leading tab": "\ttab",
    "only a blank": " ",
    "line breaks": "one\ntwo\r\nthree\r",
    "form feed and NUL": "a\fb\0c",
    "control characters": "\x01\x1b\x7f\x85",
    "Latin-1": "wörd é ÿ \u00a0",
    "beyond Latin-1": "€ 日本",
    "beyond the basic plane": "🔑 \U0001d4b3",
    "line separators of Unicode": "a\u2028b\u2029c",
    "quotes": "\"double\" 'single' `back`",
    "dollars": "$HOME ${dir:/etc:passwd} $$ %H %%",
}

# What an environment file can carry; control characters are refused.
ENVIRONMENT: dict[str, str] = {
    name: value
    for name, value in PROPERTIES.items()
    if not any((char < " " and char != "\t") or char == "\x7f" for char in value)
} | {
    "semicolon and hash": "a;b # c",
    "command substitution": "$(id) `id`",
    "whole lookahead": r"(?!(?:payments\.test)$)(?:orders|payments\..*)",
    "quote at the end": 'a"',
    "backslash before quote": 'a\\"b\\\\"',
    "assignment": 'B="c"',
}

# Each has logged in to a broker, as a SCRAM password.
PASSWORDS: dict[str, str] = {
    "everything at once": 'p"a\\s$s{w} wörd€',
    "reference": "${dir:/run/credentials/mirrormaker.service:source.mirror.jaas}",
    "syntax of JAAS": "it's;x=1//y#z/*c*/,%",
    "blanks and tab at both ends": " \tp w\t ",
    "escape look-alikes": r"a\1b\nc\s",
    "beyond ASCII": "日本 ñ \u00a0 🔑",
    "only quotes": '"""',
    "only backslashes": "\\\\\\",
    "template": "{{ lookup('env', 'HOME') }} {% raw %}",
}

if __name__ == "__main__":
    # For playbooks, which cannot import Python.
    print(
        json.dumps({"properties": PROPERTIES, "environment": ENVIRONMENT, "passwords": PASSWORDS})
    )
