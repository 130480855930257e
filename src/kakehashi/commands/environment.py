"""What a run ran on, recorded once: versions, machine, and the commit of a checkout."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import kakehashi

PACKAGES = (
    "torch",
    "lightning",
    "hydra-core",
    "sentencepiece",
    "sacrebleu",
    "datasets",
    "numpy",
    "safetensors",
)
"""What the figures of a run may depend on."""


def versions() -> dict[str, str]:
    """Of this package, of Python, and of what they stand on."""
    found = {"kakehashi": kakehashi.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a vendored copy has no metadata
            found[name] = "unknown"
    # with the build, such as +cpu, which the package's metadata may lack
    return found | {"torch": torch.__version__}


def machine(accelerator: str) -> dict[str, Any]:
    """Platform, processor, cores, threads, and the GPUs unless the run was kept to the CPU."""
    gpus = []
    if accelerator != "cpu" and torch.cuda.is_available():
        gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
    }


def _processor() -> str:
    """Its name; of Linux from the list of processors, which Python does not read."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def commit() -> dict[str, Any] | None:
    """The commit that the code was at, and whether it was changed since; None if in no checkout."""
    package = Path(kakehashi.__file__).parent
    # an installed package may lie in a checkout of something else, which does not track it
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    at = _git(package, "rev-parse", "HEAD")
    changes = _git(package, "status", "--porcelain", "--untracked-files=no", ".")
    return None if at is None else {"commit": at, "changed": bool(changes)}


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):  # there is no git here
        return None
    return done.stdout.strip() if done.returncode == 0 else None
