"""The report as a person or a machine reads it."""

from mirror_report.render.json import SCHEMA_VERSION, Answer

__all__ = ["SCHEMA_VERSION", "Answer"]
