"""`kakehashi evaluate` as a script: for srun, and readers who look for the beginning."""

import typer

from kakehashi.commands.evaluate import evaluate

if __name__ == "__main__":
    typer.run(evaluate)
