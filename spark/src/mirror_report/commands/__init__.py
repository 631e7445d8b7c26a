"""What each command does, between the rooms; nothing here prints or ends the process."""

from mirror_report.commands.apart import compare, digest
from mirror_report.commands.archived import archive
from mirror_report.commands.baselines import baseline
from mirror_report.commands.checked import CheckResult, check
from mirror_report.commands.confirmed import Confirmation, confirm
from mirror_report.commands.measured import LagResult, lag
from mirror_report.commands.proved import Proof, prove
from mirror_report.commands.reported import run
from mirror_report.commands.surveyed import groups

__all__ = [
    "CheckResult",
    "Confirmation",
    "LagResult",
    "Proof",
    "archive",
    "baseline",
    "check",
    "compare",
    "confirm",
    "digest",
    "groups",
    "lag",
    "prove",
    "run",
]
