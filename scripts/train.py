"""`kakehashi train` as a script: for torchrun, srun, and readers who look for the beginning.

torchrun --nproc-per-node 2 scripts/train.py trainer.devices=2 trainer.strategy=ddp
"""

from kakehashi.commands.train import train

if __name__ == "__main__":
    train()
