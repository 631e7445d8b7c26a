"""An archive of the classes Spark loads, so that the next JVM starts from it instead of from jars.

It saves the JVM from reading them out of jars again. The JVM takes an archive only
if it is the same JVM with the same class path, file by file; one that does not fit is passed over
without a word. Hence the key in its name: what decides is in it, and what does not fit is not even
named.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from mirror_report.config import Spark

PREFIX = "mirror-report-"
SUFFIX = ".jsa"


def jars(settings: Spark) -> list[Path]:
    """The jars beside Spark's own, in the order of the class path."""
    directory = settings.jars_directory
    return [] if directory is None else sorted(Path(directory).glob("*.jar"))


def location(settings: Spark) -> Path | None:
    """Where the archive for the present Java, Spark and jars lies, or would lie.

    :returns: ``None``: no archive can be used: none is configured, Spark works elsewhere, or there
        is no Java.
    """
    java = _java(settings)
    # Elsewhere the jars are shipped, and a class path that differs defeats the archive.
    if settings.class_archive is None or not settings.master.startswith("local") or java is None:
        return None
    spark = find_spec("pyspark")
    own = Path(spark.origin).parent / "jars" if spark and spark.origin else Path()
    files = [java, *sorted((java.parent.parent / "lib" / "server").glob("libjvm.so"))]
    key = _key([*files, *sorted(own.glob("*.jar")), *jars(settings)])
    return Path(settings.class_archive) / f"{PREFIX}{key}{SUFFIX}"


def usable(settings: Spark) -> Path | None:
    """The archive, links of its directory resolved, if it is there and may be used.

    Java runs what an archive holds. So it is a file, and it and every directory it lies in belong
    to root or to who starts Java: nobody else could have put it there.
    """
    path = location(settings)
    if path is None or not path.is_file():
        return None
    place = path.parent.resolve() / path.name
    owners = {each.lstat().st_uid for each in (place, *place.parents)}
    return place if not place.is_symlink() and owners <= {0, os.geteuid()} else None


def hint(settings: Spark) -> str | None:
    """A hint on an archive that is configured and cannot be used; ``None``: it can."""
    path = location(settings)
    if path is None or usable(settings) is not None:
        return None
    cure = "Make it again: mirror-report archive"
    if path.is_symlink():
        why = "is a link, which is not used"
    elif path.is_file():
        why = "belongs to another user, or lies in a directory of one, and is not used"
        cure = "That is as it should be where root starts it"
    else:
        why = "was made for another Java or other jars" if _others(path) else "is missing"
    return f"the class archive in {path.parent} {why}: starting Spark takes longer. {cure}"


def options(archive: Path) -> list[str]:
    """Options of a JVM that uses an archive; what it would say of it never mixes with a report."""
    return [f"-XX:SharedArchiveFile={archive}", *SILENT]


def making(archive: Path) -> list[str]:
    """Options of a JVM that writes an archive when it ends."""
    return [f"-XX:ArchiveClassesAtExit={archive}", *SILENT]


SILENT = ["-Xlog:disable", "-Xlog:all=off"]


def replace(made: Path, path: Path) -> None:
    """Put a new archive in its place, and remove those of other keys."""
    made.chmod(0o644)
    made.replace(path)
    for other in _others(path):
        other.unlink()


def _others(path: Path) -> list[Path]:
    return [other for other in path.parent.glob(f"{PREFIX}*{SUFFIX}") if other != path]


def _java(settings: Spark) -> Path | None:
    """The program that a session starts, links resolved."""
    home = settings.java_home or os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin" if home else None)
    return Path(program).resolve() if program else None


def _key(files: Iterable[Path]) -> str:
    """A hash of what the JVM compares: names, sizes and times."""
    digest = hashlib.sha256()
    for file in files:
        status = file.stat()
        digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]
