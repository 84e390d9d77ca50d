"""Limits on requests to the page, and headers of every answer."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Limits:
    """How much may be asked at a time."""

    characters: int = 20_000  # of a text
    words: int = 3_000
    attacked: int = 600  # words of a text to attack, which takes many passes
    body: int = 256 * 1024  # bytes; such a text fits, even if each character is written as \uXXXX\uXXXX
    body_seconds: float = 10.0  # for the body to come in
    rate: float = 2_000.0  # computations a second
    burst: int = 4_000  # of them at once
    waiting: int = 128  # for their turn, those at work included: 64 people on one page


class LimitedApp:
    """An app behind its limits: other hosts, other sites, too many requests and too large ones are refused."""

    def __init__(self, app: ASGIApp, *, port: int, limits: Limits) -> None:
        self.app, self.limits = app, limits
        self.hosts = {f"{host}:{port}" for host in HOSTS} | (set(HOSTS) if port == 80 else set())
        self._times: deque[float] = deque(maxlen=limits.burst)  # of the last computations that were asked for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check_origin(headers)
            if scope["method"] == "POST":
                self.check_rate(time.monotonic())
        except HTTPException as refusal:
            answer = JSONResponse({"error": refusal.detail}, refusal.status_code, refusal.headers)
            await answer(scope, receive, send_with_headers)
            return
        await self.app(scope, self._limited(headers, receive), send_with_headers)

    def _check_origin(self, headers: Headers) -> None:
        """Only this machine's own names (another name that leads here is a rebound one), and no other site."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if host.lower() not in self.hosts:
            raise HTTPException(403, f"expected the host {min(self.hosts)}; got {host[:80]!r}")
        if origin is not None and origin.lower().removeprefix("http://") not in self.hosts:
            raise HTTPException(403, f"expected a request of this page; it came from {origin[:80]!r}")

    def check_rate(self, now: float) -> None:
        """Refuse a computation where the last `burst` were asked for faster than `rate` a second."""
        rate, burst = self.limits.rate, self.limits.burst
        if len(self._times) == burst and (wait := self._times[0] + burst / rate - now) > 0:
            problem = f"more than {rate:g} requests a second: try again in {wait:.1f} s"
            raise HTTPException(429, problem, {"Retry-After": "1"})
        self._times.append(now)

    def _limited(self, headers: Headers, receive: Receive) -> Receive:
        """Receive a body no larger, and for no longer, than the limits say; errors reach the app's own handlers."""
        announced, close = headers.get("content-length", ""), {"Connection": "close"}
        too_large = announced.isdecimal() and int(announced) > self.limits.body
        size, more, until = 0, True, asyncio.get_running_loop().time() + self.limits.body_seconds

        async def limited() -> Message:
            nonlocal size, more
            if not more:  # all has come: what follows is that the browser goes
                return await receive()
            message: Message = {}
            try:
                async with asyncio.timeout_at(until):
                    message = message if too_large else await receive()
            except TimeoutError:
                raise HTTPException(408, "the body took too long to come", close) from None
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
            if too_large or size > self.limits.body:
                problem = f"expected a body of at most {self.limits.body:,} bytes: send a shorter text"
                raise HTTPException(413, problem, close)
            return message

        return limited
