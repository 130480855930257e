"""The server process: a socket, uvicorn on it, and how it ends."""

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Callable
from types import FrameType
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from kakehashi.errors import ConfigError

_HEAD = 10.0
"""Seconds in which the head of a connection's next request has to come."""
_FAREWELL = 1.0
"""Seconds to send the last answers in, when the service has given up."""


class Connection(H11Protocol):
    """A connection that is closed when it waits too long for a request.

    Uvicorn itself waits for ever for the rest of one whose first bytes have come.
    """

    head = _HEAD
    _waits: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waits is not None:
            self._waits.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
        self._waits = self.loop.call_later(self.head, self._waited)

    def _waited(self) -> None:
        cycle = cast(RequestResponseCycle | None, self.cycle)
        if cycle is None or cycle.response_complete:  # nothing is under way
            self.transport.close()


class Server(uvicorn.Server):
    """Uvicorn, which a first signal asks to finish and a second one to give up."""

    def __init__(self, app: ASGIApp, grace: float, give_up: Callable[[], None]) -> None:
        """A server of one application.

        Args:
            app: the application.
            grace: seconds to finish what has come, after the first signal.
            give_up: lets what is not finished then be answered all the same.
        """
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )
        self._grace = grace
        self._give_up = give_up
        self._loop: asyncio.AbstractEventLoop | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Uvicorn would send itself the signal again at the end, and so never exit with 0.
        if self.should_exit and self._loop is not None:
            self._loop.call_soon_threadsafe(self._end)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        timer = self._loop.call_later(self._grace, self._end)
        await super().shutdown(sockets)
        timer.cancel()

    def run_on(self, listening: socket.socket) -> None:
        """Answer requests until a signal comes."""
        self.run([listening])

    def _end(self) -> None:
        self._give_up()
        asyncio.get_running_loop().call_later(_FAREWELL, self._leave)

    def _leave(self) -> None:
        """Wait no longer for who does not take an answer."""
        self.force_exit = True


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        ConfigError: when the address is not this machine's or the port is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"cannot listen at {host}: {error.strerror or error}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2_048)
    except OSError as error:
        listening.close()
        advice = {
            errno.EADDRINUSE: "; is another service there? --port takes another one",
            errno.EADDRNOTAVAIL: "; --host takes an address of this machine",
        }.get(error.errno or 0, "")
        raise ConfigError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}{advice}"
        ) from error
    return listening


def address(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def is_loopback(listening: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback
