"""`kakehashi serve`: a model on HTTP, with a page to type into."""

import os
import sys
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from kakehashi.commands import searching as given
from kakehashi.errors import ConfigError

_EXTRA = "pip install 'kakehashi[serve]'"


def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 lets every machine around in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which requests may call this service."),
    ] = None,
    others: given.Together = None,
    engine: given.Engine = given.EngineName.torch,
    device: given.Device = "cpu",
    threads: given.Threads = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Sentences of all requests computed together; 1: alone.")
    ] = 64,
    max_lines: Annotated[int, typer.Option(min=1, help="Texts in one request.")] = 128,
    max_characters: Annotated[int, typer.Option(min=1, help="Characters of one text.")] = 2_000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one request.")] = 1 << 20,
    queue: Annotated[int, typer.Option(min=1, help="Sentences that may wait.")] = 1_024,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 30.0,
    grace: Annotated[
        float, typer.Option(min=1, help="Seconds to finish what waits, when asked to stop.")
    ] = 30.0,
) -> None:
    """Translate, score and align over HTTP, and show a page to type into.

    The page is at the address that is printed; /openapi.json describes the rest. Ctrl-C and
    SIGTERM finish what waits and end with status 0, or 1 if --grace was not enough.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"serving needs {error.name}, which is not installed: {_EXTRA}") from None
    from kakehashi.inference.folder import CARD
    from kakehashi.serving.app import create_app
    from kakehashi.serving.backend import TranslatorBackend
    from kakehashi.serving.limits import Limits
    from kakehashi.serving.server import Server, address, bind, is_loopback
    from kakehashi.serving.service import Service

    for option, seconds in (("--grace", grace), ("--timeout", timeout)):
        if not isfinite(seconds):
            raise ConfigError(f"{option} is {seconds}; it must be a number of seconds")
    limits = Limits(
        body=max_bytes,
        lines=max_lines,
        characters=max_characters,
        queue=queue,
        seconds=timeout,
        together=batch_size,
        padded=batch_size * 200,
    )
    with bind(host, port) as listening:
        translator = given.load_translator([model, *(others or ())], device, threads, engine)
        cards = [path for path in (model / CARD, model / "model" / CARD) if path.is_file()]
        card = cards[0].read_text("utf-8", "replace") if cards else ""
        backend = TranslatorBackend(translator, batch_size, card)
        with Service(backend, limits) as service:
            facts = backend.facts(limits)
            app = create_app(service, facts, [host, *(allow_host or [])])
            if not is_loopback(listening):
                _say(
                    "warning: other machines can reach this address; nothing asks them who they "
                    "are, and nothing is encrypted"
                )
            _say(
                f"{facts.source_language} to {facts.target_language} at {address(listening)}, "
                "until Ctrl-C"
            )
            Server(app, grace, service.give_up).run_on(listening)
    dropped = service.stopping.dropped
    if dropped:
        _say(f"error: stopped before {dropped:,} request{'s' * (dropped > 1)} could be answered")
    else:
        _say("stopped; every request was answered")
    if service.busy:
        # A thread that is still computing must not be pulled down with the interpreter.
        sys.stdout.flush()
        os._exit(1 if dropped else 0)
    if dropped:
        raise typer.Exit(1)


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
