"""`kakehashi probe`: what a model's attention does, measured."""

import typer

from kakehashi.commands.probe_heads import heads
from kakehashi.commands.probe_pronoun import pronoun

probe = typer.Typer(
    help="Measure what attention does: heads, and what a pronoun looks at.", no_args_is_help=True
)
probe.command()(heads)
probe.command()(pronoun)
