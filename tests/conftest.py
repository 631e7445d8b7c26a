"""Modules of roles find their shared Python, as on a host."""

from __future__ import annotations

import ansible.module_utils

from tests.loading import MODULE_UTILS

ansible.module_utils.__path__ += MODULE_UTILS
