"""Training: the objective, the optimisers, the loop, and what is kept of a run."""
