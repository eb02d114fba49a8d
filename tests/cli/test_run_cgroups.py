"""Our own control group, found in what the kernel says of mounts and memberships."""

from __future__ import annotations

from pathlib import Path

import pytest

from zkelect.cli.run.keeper.cgroups import find_own

V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate"
HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"""
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
PART = "700 690 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw"
SPACE = r"29 23 0:26 / /mnt/control\040groups rw - cgroup2 cgroup2 rw"
SERVICE = "/system.slice/billing.service"


@pytest.mark.parametrize(
    ("mountinfo", "membership", "found"),
    [
        pytest.param(V2, f"0::{SERVICE}", f"/sys/fs/cgroup{SERVICE}", id="unified"),
        pytest.param(V2, "0::/", "/sys/fs/cgroup", id="at the root"),
        pytest.param(
            HYBRID, "5:memory:/m\n0::/run", "/sys/fs/cgroup/unified/run", id="beside cgroup v1"
        ),
        pytest.param(PART, "0::/docker/abc/x", "/sys/fs/cgroup/x", id="a part is mounted"),
        pytest.param(PART, "0::/docker/abc", "/sys/fs/cgroup", id="just our part is mounted"),
        pytest.param(PART, "0::/docker/abcd", None, id="another part is mounted"),
        pytest.param(f"{PART}\n{V2}", "0::/x", "/sys/fs/cgroup/x", id="the mount that has it"),
        pytest.param(SPACE, "0::/x", "/mnt/control groups/x", id="a space in the path"),
        pytest.param(V2, "0::/../other", None, id="outside of our namespace"),
        pytest.param(V1, "5:memory:/m", None, id="only cgroup v1"),
        pytest.param(V1, "5:memory:/m\n0::/x", None, id="not mounted"),
        pytest.param(V2, "5:memory:/0::/x", None, id="a v1 group with a strange name"),
        pytest.param("", "", None, id="nothing at all"),
    ],
)
def test_our_group_is_found(mountinfo: str, membership: str, found: str | None) -> None:
    assert find_own(mountinfo, membership) == (None if found is None else Path(found))
