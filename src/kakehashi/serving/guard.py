"""What every request passes before anything reads it, and what every answer carries."""

import asyncio
import contextlib
import ipaddress
import json
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kakehashi.serving.metrics import Metrics
from kakehashi.serving.refusal import Refusal
from kakehashi.serving.stopping import Stopping

_AT_ONCE = 1_000
"""Requests under way; more are refused."""
_DRAINED = 16 << 20
_DRAINING = 2.0
"""Bytes that are read of a body that is too large, and for how many seconds: a client that is still
sending would not see the answer."""

_SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    # The page has its own, which lets it run; nothing else is meant to be looked at.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Guard:
    """An ASGI application around another one.

    It refuses requests by a name that is not the service's: a page somewhere on the web can make
    a browser call this machine under the page's own name (DNS rebinding), but not under another.
    It takes in a body as far as it may go, asks for JSON (which no form of a foreign page can
    send), measures, and sets the security headers.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        stopping: Stopping,
        paths: Collection[str],
        names: Collection[str],
        body: int,
        seconds: float,
    ) -> None:
        """Around ``app``.

        Args:
            app: the application.
            metrics: where requests are counted.
            stopping: when it begins, nobody is waited for any more.
            paths: those counted by name; all others together.
            names: names of this service, beside addresses and localhost.
            body: bytes of a request's body, at most.
            seconds: in which it has to arrive.
        """
        self._app = app
        self._metrics = metrics
        self._stopping = stopping
        self._under_way = 0
        self._paths = frozenset(paths)
        self._names = frozenset(map(_name, names)) | {"localhost"}
        self._body = body
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        start = time.perf_counter()
        path = scope["path"] if scope["path"] in self._paths else "other"
        status = 499  # until something has been sent
        self._under_way += 1

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            try:
                receive = await self._admit(scope, receive)
            except Refusal as refusal:
                self._metrics.errors.labels(refusal.cause).inc()
                await _refuse(refusal, send_on)
            else:
                # Uvicorn sends the head alone.
                method = "GET" if scope["method"] == "HEAD" else scope["method"]
                await self._app({**scope, "method": method}, receive, send_on)
        except asyncio.CancelledError:  # the server ends, and waits for nobody
            self._metrics.errors.labels("stopping").inc()
            end = self._stopping.refuse()
            if status == 499:
                await _refuse(end, send_on)
        finally:
            self._under_way -= 1
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - start)

    async def _admit(self, scope: Scope, receive: Receive) -> Receive:
        if self._under_way > _AT_ONCE:
            raise Refusal(
                503,
                "overloaded",
                f"{_AT_ONCE:,} requests are under way already: ask again later",
                {"Retry-After": "1", "Connection": "close"},
            )
        headers = Headers(scope=scope)
        self._check_name(headers.get("host", ""))
        if scope["method"] != "POST":
            return receive
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, "malformed", "send JSON, with Content-Type: application/json")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._body:
            await _drain(receive)
            raise self._too_large()
        return _replay(await self._arrived(receive), receive)

    async def _arrived(self, receive: Receive) -> bytes:
        """The body, if it comes in time and before the end of the service."""
        reading = asyncio.ensure_future(self._read(receive))
        ending = asyncio.ensure_future(self._stopping.begun.wait())
        try:
            await asyncio.wait(
                (reading, ending), timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if reading.done():
                return reading.result()
        finally:
            reading.cancel()
            ending.cancel()
        if ending.done():
            raise self._stopping.refuse()
        raise Refusal(
            408,
            "slow",
            f"the request did not arrive within {self._seconds:g} s",
            {"Connection": "close"},
        )

    async def _read(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(499, "gone", "the client has gone")
            body += message.get("body", b"")
            if len(body) > self._body:
                await _drain(receive)
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            "too_large",
            f"the request is larger than {self._body:,} bytes: send fewer lines at a time",
            {"Connection": "close"},  # not all of it may have been read
        )

    def _check_name(self, host: str) -> None:
        name = _name(host)
        if name in self._names or _is_address(name):
            return
        raise Refusal(
            421,
            "misdirected",
            "this service does not answer to the name in the Host header: use its address, or "
            "start it with --allow-host NAME",
        )


def _name(host: str) -> str:
    """The name or address in a Host header, without its port and brackets."""
    host = host.strip()
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    if host.count(":") > 1:  # an address of IPv6 by itself, as --host takes it
        return host.lower()
    return host.partition(":")[0].lower().rstrip(".")


async def _drain(receive: Receive) -> None:
    """Read what still comes of a body, within bounds."""
    read = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAINING):
            while read < _DRAINED:
                message = await receive()
                read += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once more, and then whatever else comes: that the client leaves."""
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"error": refusal.sentence}, ensure_ascii=False).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **refusal.headers,
    }
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
