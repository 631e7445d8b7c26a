"""Values by partition, in JSON, whose keys are text."""

from collections.abc import Mapping
from typing import Any

from mirror_report.model import Contents, Epochs


def offsets(values: Mapping[Any, int] | None) -> dict[int, int]:
    """Offsets by partition, out of JSON; none of ``None``."""
    return {int(partition): int(offset) for partition, offset in (values or {}).items()}


def texts(values: Mapping[int, int]) -> dict[str, int]:
    """Offsets by partition, as JSON has them."""
    return {str(partition): offset for partition, offset in values.items()}


def epochs_of(values: Mapping[Any, Any] | None) -> dict[int, Epochs]:
    """Leader epochs by partition, out of JSON; none of ``None``."""
    return {
        int(partition): tuple((int(epoch), int(start)) for epoch, start in pairs)
        for partition, pairs in (values or {}).items()
    }


def contents_of(values: Mapping[Any, Any] | None) -> dict[int, Contents]:
    """What single records hold by partition, out of JSON; none of ``None``."""
    return {
        int(partition): tuple((int(offset), str(content)) for offset, content in pairs)
        for partition, pairs in (values or {}).items()
    }


def pairs_as_texts(values: Mapping[int, Epochs | Contents]) -> dict[str, list[list[Any]]]:
    """What :func:`epochs_of` and :func:`contents_of` read, as JSON has it; no empty one."""
    return {str(partition): [list(pair) for pair in pairs] for partition, pairs in values.items()
            if pairs}  # fmt: skip
