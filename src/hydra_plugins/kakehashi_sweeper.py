"""Where Hydra finds the sweeper: it takes plugins from this namespace and from nowhere else."""

from kakehashi.commands.sweeper import Search


class KakehashiSearch(Search):
    """``hydra/sweeper=optuna``."""
