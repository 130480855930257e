"""The server process: a socket, uvicorn on it, and how it ends."""

import asyncio
import ipaddress
import math
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from kakehashi.errors import ConfigError

_CONNECTIONS = 1_000
"""At a time; over it uvicorn answers 503 by itself."""


class Server(uvicorn.Server):
    """Uvicorn, which a first signal asks to finish and a second one to end at once."""

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
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=_CONNECTIONS,
                timeout_graceful_shutdown=math.ceil(grace) + 2,  # had giving up not helped
            )
        )
        self._grace = grace
        self._give_up = give_up

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Uvicorn would send itself the signal again at the end, and so never exit with 0.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        timer = asyncio.get_running_loop().call_later(self._grace, self._give_up)
        await super().shutdown(sockets)
        timer.cancel()

    def run_on(self, listening: socket.socket) -> bool:
        """Answer requests until a signal comes; False where it took a second one."""
        self.run([listening])
        return not self.force_exit


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
        raise ConfigError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}; is another service "
            "there? --port takes another one"
        ) from error
    return listening


def address(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def is_loopback(listening: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback
