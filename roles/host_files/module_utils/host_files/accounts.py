"""Users and groups of a host: their ids, and acting as one of them."""

import contextlib
import grp
import os
import pwd
from collections.abc import Iterator

NOBODY = 65534
"""Group of a user id without an account."""


def user_id(name: str) -> int | None:
    """Id of a user, ``None`` if there is none of that name."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def group_id(name: str) -> int | None:
    """Id of a group, ``None`` if there is none of that name."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


@contextlib.contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Have the rights of a user id inside the block: that user gains nothing by what is done.

    Changes nothing for root's own id, or where the process is not root.
    """
    if os.geteuid() != 0 or user == 0:
        yield
        return
    try:
        account = pwd.getpwuid(user)
        group, groups = account.pw_gid, os.getgrouplist(account.pw_name, account.pw_gid)
    except KeyError:
        group, groups = NOBODY, [NOBODY]
    own_groups, own_group = os.getgroups(), os.getegid()
    os.setgroups(groups)
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_group)
        os.setgroups(own_groups)
