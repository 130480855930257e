"""Several processes of one run: whether this is the first, and what they settle before training.

torchrun and srun start all processes of a run at once, with the same words. Lightning joins them
when training begins; the run's folder and the prepared corpus they settle before, through the store
with which torch will make its process group. Processes that Lightning starts itself come later, and
find all of this done.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

T = TypeVar("T")

_PATIENCE = timedelta(days=3)
"""For the preparation of a corpus, however large."""


def is_first() -> bool:
    """Whether this process is the one that writes and speaks: the only one, or number 0."""
    number = os.environ.get("RANK" if _by_torchrun() else "SLURM_PROCID" if _by_srun() else "")
    if number is None:  # Lightning's own way to number the processes that it starts
        return all(int(os.environ.get(name, "0")) == 0 for name in ("LOCAL_RANK", "NODE_RANK"))
    return int(number) == 0


def settled(name: str, value: str) -> str:
    """The first process's ``value``, in every process of the run."""
    store = _store()
    if store is None:
        return value
    if is_first():
        store.set(_key(name), value)
    return store.get(_key(name)).decode()


@contextmanager
def first_of_each_machine(name: str) -> Iterator[None]:
    """One process of each machine does something, then the others, which find it done."""
    store = _store()
    if store is None:
        yield
        return
    of_machine, in_machine = ("GROUP_RANK", "LOCAL_RANK")
    if not _by_torchrun():
        of_machine, in_machine = ("SLURM_NODEID", "SLURM_LOCALID")
    key, first = _key(f"{name}/{os.environ[of_machine]}"), os.environ[in_machine] == "0"
    if not first:
        store.wait([key], _PATIENCE)
    try:
        yield
    finally:
        if first:
            store.set(key, "")


def gathered(value: T) -> list[T]:
    """The value of every process, in order, once training has joined them; all have to ask."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [value]
    values: list[T] = [value] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(values, value)
    return values


def _key(name: str) -> str:
    # torchrun may start all processes again after a failure
    return f"kakehashi/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{name}"


def _by_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _by_srun() -> bool:
    # as Lightning decides it
    by_hand = os.environ.get("SLURM_JOB_NAME") in ("bash", "interactive")
    return "SLURM_NTASKS" in os.environ and not by_hand


@cache
def _store() -> "Store | None":
    """What all processes of the run can read; kept, because the first process may be its host."""
    from torch.distributed.rendezvous import rendezvous

    store: Store
    if _by_torchrun():
        store, _, size = next(rendezvous("env://"))
        return store if size > 1 else None
    if not _by_srun() or os.environ["SLURM_NTASKS"] == "1":
        return None
    from lightning.fabric.plugins.environments.slurm import SLURMEnvironment

    machine = SLURMEnvironment()
    place = f"rank={machine.global_rank()}&world_size={machine.world_size()}"
    store, _, _ = next(rendezvous(f"tcp://{machine.main_address}:{machine.main_port}?{place}"))
    return store
