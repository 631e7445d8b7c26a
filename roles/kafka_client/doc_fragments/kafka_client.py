"""Documentation of the options with which modules reach a cluster, written once for all of them."""

from __future__ import annotations

import json
from typing import Any

SUBOPTIONS: dict[str, dict[str, Any]] = {
    "bootstrap_servers": {
        "description": "Brokers to ask first.",
        "type": "list",
        "elements": "str",
        "required": True,
    },
    "security_protocol": {
        "description": "How the listener is secured.",
        "type": "str",
        "default": "PLAINTEXT",
        "choices": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
    },
    "sasl_mechanism": {"description": "SASL mechanism.", "type": "str"},
    "username": {"description": "User.", "type": "str"},
    "password": {"description": "Password.", "type": "str"},
    "ssl_ca": {"description": "Certificate authority, as PEM text.", "type": "str"},
    "ssl_certificate": {"description": "Client certificate, as PEM text.", "type": "str"},
    "ssl_key": {"description": "Its private key, PKCS#8 PEM text.", "type": "str"},
}


def connections(*names: str) -> str:
    """Options that each hold a connection; a module describes whose connection it is."""
    option = {
        "description": "How to reach the cluster, as the filter C(kafka_python_client) returns it.",
        "type": "dict",
        "required": True,
        "suboptions": SUBOPTIONS,
    }
    return json.dumps({"options": dict.fromkeys(names, option)})


class ModuleDocFragment:
    """Named by C(extends_documentation_fragment) of a module."""

    DOCUMENTATION = connections("connection")
    LOGIN = connections("login")
    MIRROR = connections("source", "target")
