"""The report as a person or a machine reads it."""

from mirror_report.render.answer import Answer
from mirror_report.render.json import SCHEMA_VERSION

__all__ = ["SCHEMA_VERSION", "Answer"]
