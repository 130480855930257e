"""Freed memory stays with the process, where the C library can be told so."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from kakehashi.allocator import keep_freed_memory
if {keep}:
    assert keep_freed_memory()
def work():
    held = [torch.ones(1 << 21) for _ in range(20)]
    del held
for _ in range(5):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(keep: bool) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(keep=keep)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_a_repeated_allocation_maps_no_page_again() -> None:
    assert page_faults(keep=True) < 100  # of 40,960 pages; about 2,000 by default
