"""`kakehashi translate` as a script: for srun, and readers who look for the beginning."""

import typer

from kakehashi.commands.translate import translate

if __name__ == "__main__":
    typer.run(translate)
