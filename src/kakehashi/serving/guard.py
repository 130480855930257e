"""What every request passes before anything reads it, and what every answer carries."""

import asyncio
import ipaddress
import json
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kakehashi.serving.metrics import Metrics
from kakehashi.serving.refusal import Refusal

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
        paths: Collection[str],
        names: Collection[str],
        body: int,
        seconds: float,
    ) -> None:
        """Around ``app``.

        Args:
            app: the application.
            metrics: where requests are counted.
            paths: those counted by name; all others together.
            names: names of this service, beside addresses and localhost.
            body: bytes of a request's body, at most.
            seconds: in which it has to arrive.
        """
        self._app = app
        self._metrics = metrics
        self._paths = frozenset(paths)
        self._names = frozenset(name.lower() for name in names) | {"localhost"}
        self._body = body
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        start = time.perf_counter()
        path = scope["path"] if scope["path"] in self._paths else "other"
        status = 499  # until something has been sent

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
                await self._app(scope, receive, send_on)
        finally:
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - start)

    async def _admit(self, scope: Scope, receive: Receive) -> Receive:
        headers = Headers(scope=scope)
        self._check_name(headers.get("host", ""))
        if scope["method"] != "POST":
            return receive
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, "malformed", "send JSON, with Content-Type: application/json")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._body:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except TimeoutError:
            raise Refusal(
                408, "slow", f"the request did not arrive within {self._seconds:g} s"
            ) from None
        return _replay(body, receive)

    async def _read(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(499, "gone", "the client has gone")
            body += message.get("body", b"")
            if len(body) > self._body:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            "too_large",
            f"the request is larger than {self._body:,} bytes: send fewer lines at a time",
            {"Connection": "close"},  # the rest of it is not read
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
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().rstrip(".")


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
