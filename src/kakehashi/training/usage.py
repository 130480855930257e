"""How much memory is there, and how much is taken, in bytes."""

from pathlib import Path

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def peak(device: torch.device) -> int | None:
    """The most that was taken at once: by tensors on a GPU, by the process on a CPU.

    None on systems that don't tell.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return _line(STATUS, "VmHWM")


def current(device: torch.device) -> int | None:
    """What is taken now."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return _line(STATUS, "VmRSS")


def start_peak(device: torch.device) -> None:
    """Let ``peak`` count from now on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif CLEAR.exists():
        CLEAR.write_text("5")


def available(device: torch.device) -> int | None:
    """What could be taken in addition; in a container, what its limit leaves."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free_memory = _line(MEMINFO, "MemAvailable")
    limit, taken = CGROUP / "memory.max", CGROUP / "memory.current"
    if free_memory is None or not limit.exists() or limit.read_text().strip() == "max":
        return free_memory
    return min(free_memory, int(limit.read_text()) - int(taken.read_text()))


def _line(path: Path, name: str) -> int | None:
    """A line such as ``VmRSS:   1024 kB``."""
    if not path.exists():
        return None
    for line in path.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return None
