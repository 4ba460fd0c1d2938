"""Which file systems deliver no events for changes made elsewhere, read from `/proc/self/mountinfo`.

A network or host-shared mount accepts an inotify watch and then stays silent about what other machines (or Windows,
for WSL) write, so such roots are polled. Without a mountinfo (not Linux) every file system is taken to deliver events.
"""

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

__all__ = ["MOUNTINFO", "filesystem_of", "needs_polling", "parse_mountinfo", "read_mounts"]

MOUNTINFO = Path("/proc/self/mountinfo")

_SILENT = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "fuse", "nfs", "nfs4", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs"}
)
_OCTAL = re.compile(r"\\([0-7]{3})")
_MOUNT_POINT = 4  # "36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw": the fifth field, always
_FIRST_OPTIONAL = 6


def parse_mountinfo(text: str) -> dict[str, str]:
    """Map mount points to file system types; of several mounts on one point the last one is in effect."""
    mounts: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.split(" ")
        try:
            kind = fields[fields.index("-", _FIRST_OPTIONAL) + 1]
        except (ValueError, IndexError):
            continue
        mounts[_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[_MOUNT_POINT])] = kind
    return mounts


def read_mounts(mountinfo: Path = MOUNTINFO) -> dict[str, str]:
    """Parse the mounts of this process; empty where the system does not tell."""
    try:
        return parse_mountinfo(mountinfo.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return {}


def filesystem_of(path: PurePath, mounts: Mapping[str, str]) -> str:
    """The type of the file system an absolute path lies on, existing or not; empty when unknown."""
    return next((mounts[str(place)] for place in (path, *path.parents) if str(place) in mounts), "")


def needs_polling(filesystem: str) -> bool:
    """Whether a file system of this type keeps silent about changes made elsewhere."""
    return filesystem in _SILENT or filesystem.startswith("fuse.")
