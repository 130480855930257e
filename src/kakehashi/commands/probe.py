"""`kakehashi probe`: what a model's attention is good for, measured."""

import typer

from kakehashi.commands.probe_alignment import alignment

probe = typer.Typer(
    help="Measure what a model's attention is good for.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@probe.callback()
def _probe() -> None:
    """Measure what a model's attention is good for."""


probe.command()(alignment)
