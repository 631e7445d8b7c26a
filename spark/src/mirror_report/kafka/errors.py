"""How asking a cluster can fail."""

from mirror_report.model import ReportError


class ClusterError(ReportError):
    """A cluster did not answer as it should."""


class UnreachableError(ClusterError):
    """No broker of the cluster could be reached."""

    kind = "unreachable"


class AuthenticationError(ClusterError):
    """The cluster answers and refuses our identity."""

    kind = "authentication"


class DeniedError(ClusterError):
    """Our identity lacks a permission; the message names it."""

    kind = "permission"
