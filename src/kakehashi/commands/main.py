"""The `kakehashi` command."""

import sys
from typing import Annotated

import typer

import kakehashi
from kakehashi.commands.align import align
from kakehashi.commands.average import average
from kakehashi.commands.check import check
from kakehashi.commands.compare import compare
from kakehashi.commands.evaluate import evaluate
from kakehashi.commands.exits import fail, interrupted
from kakehashi.commands.export import export
from kakehashi.commands.heatmap import heatmap
from kakehashi.commands.probe import probe
from kakehashi.commands.runs import runs
from kakehashi.commands.score import score
from kakehashi.commands.serve import serve
from kakehashi.commands.streams import drop_unwritten, hold_standard_streams
from kakehashi.commands.translate import translate
from kakehashi.errors import KakehashiError

app = typer.Typer(
    help="Train translation models from a parallel corpus, measure them, see them attend.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kakehashi {kakehashi.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Options of `kakehashi` itself."""


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": [],
    },
)
def train(context: typer.Context) -> None:
    """Train, score and save a model: GROUP=OPTION, group.setting=VALUE, --help for the list."""
    from kakehashi.commands.train import train as run

    run(context.args)


app.command()(check)
app.command()(translate)
app.command()(score)
app.command()(align)
app.command()(serve)
app.command()(evaluate)
app.command()(heatmap)
app.command()(compare)
app.command()(average)
app.command()(export)
app.command()(runs)
app.add_typer(probe, name="probe")


def main() -> None:
    """Run the command line; errors meant for people become one message and exit status 1."""
    hold_standard_streams()
    try:
        app()
    except KakehashiError as error:
        drop_unwritten()
        fail(error)
    except KeyboardInterrupt:
        interrupted()
    except BrokenPipeError:
        # the reader of our output has gone, as with `| head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        drop_unwritten()
        fail(error)  # a full disk, a closed output: what the system says is what there is to say


if __name__ == "__main__":
    main()
