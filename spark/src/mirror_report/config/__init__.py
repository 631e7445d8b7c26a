"""The report's configuration: a YAML document into typed settings."""

from mirror_report.config.cluster import Cluster
from mirror_report.config.credentials import Credentials
from mirror_report.config.errors import ConfigError
from mirror_report.config.flow import HEARTBEATS, ISOLATIONS, Flow, Permission
from mirror_report.config.settings import DEFAULT_PATH, Budget, Settings, Spark, Warn

__all__ = [
    "DEFAULT_PATH",
    "HEARTBEATS",
    "ISOLATIONS",
    "Budget",
    "Cluster",
    "ConfigError",
    "Credentials",
    "Flow",
    "Permission",
    "Settings",
    "Spark",
    "Warn",
]
