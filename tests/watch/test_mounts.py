from pathlib import Path

import pytest

from acp_history_bridge.watch.mounts import filesystem_of, needs_polling, parse_mountinfo, read_mounts

MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw master:7 propagate_from:2 - nfs4 server:/home rw
31 22 0:41 / /mnt/my\\040drive rw - 9p C:\\134 rw
32 22 0:42 / /srv rw - ext4 /dev/sdb1 rw
33 22 0:43 / /srv rw - fuse.sshfs host:/srv rw
nonsense
34 22 0:44 / /broken rw -
"""


def test_a_path_lies_on_its_longest_mount_point() -> None:
    """The nearest mount point above a path decides, whether or not the path exists."""
    mounts = parse_mountinfo(MOUNTINFO)
    assert filesystem_of(Path("/home/me/.claude"), mounts) == "nfs4"
    assert filesystem_of(Path("/homes/me"), mounts) == "ext4"
    assert filesystem_of(Path("/"), mounts) == "ext4"


def test_the_last_of_several_mounts_on_one_point_counts() -> None:
    """A mount hides what was mounted there before."""
    assert filesystem_of(Path("/srv/x"), parse_mountinfo(MOUNTINFO)) == "fuse.sshfs"


def test_escaped_blanks_in_mount_points_are_understood() -> None:
    """The kernel writes a blank as an octal number."""
    assert filesystem_of(Path("/mnt/my drive/x"), parse_mountinfo(MOUNTINFO)) == "9p"


def test_damaged_lines_are_passed_over() -> None:
    """A line that cannot be read costs no other line."""
    assert set(parse_mountinfo(MOUNTINFO)) == {"/", "/home", "/mnt/my drive", "/srv"}


def test_without_mountinfo_nothing_is_known(tmp_path: Path) -> None:
    """Other systems have no such file; then every file system is taken to report."""
    assert read_mounts(tmp_path / "missing") == {}
    assert not needs_polling(filesystem_of(Path("/home"), {}))


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "drvfs", "fuse.sshfs", "virtiofs", "vboxsf"])
@pytest.mark.fault("W7")
def test_shared_file_systems_need_polling(kind: str) -> None:
    """They do not report what others write."""
    assert needs_polling(kind)


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "xfs", "overlay", "tmpfs", "zfs", "fuseblk", ""])
def test_local_file_systems_do_not_need_polling(kind: str) -> None:
    """They report everything."""
    assert not needs_polling(kind)
