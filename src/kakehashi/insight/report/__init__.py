"""The report of a run: one page, made of what the run's folder holds and of nothing else."""
