"""`kakehashi probe`: what a model's attention does, and what it is good for, measured."""

import typer

from kakehashi.commands.probe_alignment import alignment
from kakehashi.commands.probe_heads import heads
from kakehashi.commands.probe_pronoun import pronoun

probe = typer.Typer(
    help="Measure attention: what heads do, how well it aligns, what a pronoun looks at.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
probe.command()(heads)
probe.command()(alignment)
probe.command()(pronoun)
