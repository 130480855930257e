"""What the processes of a run settle, in two that torchrun could have started."""

import os
import socket
import subprocess
import sys
import time

import pytest

from kakehashi.processes import first_of_each_machine, is_first, settled

NUMBERS = ("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_NTASKS", "SLURM_PROCID")
PROGRAM = """
import time
from kakehashi.processes import first_of_each_machine, is_first, settled
print(is_first(), settled("place", "WORD"), settled("other", "WORD-2"))
with first_of_each_machine("work"):
    print(time.monotonic())
    time.sleep(0.2)
    print(time.monotonic())
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch) -> None:
    for name in NUMBERS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({}, True),
        ({"LOCAL_RANK": "0", "NODE_RANK": "0"}, True),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, False),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False),
        ({"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"TORCHELASTIC_RUN_ID": "none", "RANK": "2", "LOCAL_RANK": "0"}, False),
        ({"SLURM_NTASKS": "2", "SLURM_PROCID": "1"}, False),
        ({"SLURM_NTASKS": "2", "SLURM_PROCID": "0"}, True),
        ({"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_JOB_NAME": "bash"}, True),
        # srun starts torchrun on each machine, torchrun the processes
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "TORCHELASTIC_RUN_ID": "7", "RANK": "0"}, True),
    ],
)
def test_the_first_process(monkeypatch, environment, first):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_first() == first


def test_one_process_settles_everything_itself():
    assert settled("place", "here") == "here"
    with first_of_each_machine("work"):
        pass


def test_two_processes_take_the_first_ones_word_and_the_second_waits(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = os.environ | {
        "TORCHELASTIC_RUN_ID": "none",
        "WORLD_SIZE": "2",
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    shared.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    started = []
    for rank in (1, 0):
        numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        program = PROGRAM.replace("WORD", f"from-{rank}")
        if rank == 0:  # the host of the store: it stays until the other one has read
            program += "input()\n"
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", program],
                env=shared | numbers,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        )
        time.sleep(0.1)
    second, first = (p.communicate("\n", timeout=120)[0].split("\n") for p in started)
    assert first[0] == "True from-0 from-0-2"
    assert second[0] == "False from-0 from-0-2"
    assert float(first[2]) <= float(second[1])
