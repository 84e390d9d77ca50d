"""Limits on requests to the page, and headers of every answer."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
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
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """How much may be asked at a time."""

    characters: int = 20_000  # of a text
    words: int = 3_000
    attacked: int = 600  # words of a text to attack, which takes many passes
    body: int = 256 * 1024  # bytes; such a text fits, even if each character is written as \uXXXX\uXXXX
    body_seconds: float = 10.0  # for the body to come in
    rate: float = 20.0  # computations a second
    burst: int = 40  # of them at once
    waiting: int = 8  # for their turn, the one at work included


class Bucket:
    """A token bucket: `burst` at once, then `rate` a second."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst = rate, burst
        self._full, self._at = float(burst), 0.0

    def take(self, now: float) -> float:
        """Take a token: 0, or the seconds until there is one."""
        self._full = min(self.burst, self._full + (now - self._at) * self.rate)
        self._at = now
        if self._full < 1:
            return (1 - self._full) / self.rate
        self._full -= 1
        return 0.0


class Turns:
    """One computation at a time, with few in the queue."""

    def __init__(self, waiting: int) -> None:
        self._most, self._now, self._lock = waiting, 0, asyncio.Lock()

    async def take(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives, computed in a thread when it is this request's turn."""
        if self._now >= self._most:
            raise HTTPException(503, "too many requests are waiting: try again soon", {"Retry-After": "1"})
        self._now += 1
        try:
            async with self._lock:
                if await request.is_disconnected():  # the user typed on: nobody would see the answer
                    raise HTTPException(408, "the request was given up")
                return await run_in_threadpool(work)
        finally:
            self._now -= 1


class Gate:
    """An app behind its limits: other hosts, other sites, too many requests and too large ones are refused."""

    def __init__(self, app: ASGIApp, *, port: int, limits: Limits) -> None:
        self.app, self.limits = app, limits
        self.hosts = {f"{host}:{port}" for host in HOSTS} | (set(HOSTS) if port == 80 else set())
        self._bucket = Bucket(limits.rate, limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            self._check(Headers(scope=scope))
            if scope["method"] in ("POST", "PUT", "PATCH"):
                if wait := self._bucket.take(time.monotonic()):
                    raise HTTPException(
                        429,
                        f"more than {self.limits.rate:g} requests a second: try again in {wait:.1f} s",
                        {"Retry-After": "1"},
                    )
                receive = await self._body(Headers(scope=scope), receive)
        except HTTPException as refusal:
            answer = JSONResponse({"error": refusal.detail}, refusal.status_code, refusal.headers)
            await answer(scope, receive, marked)
            return
        await self.app(scope, receive, marked)

    def _check(self, headers: Headers) -> None:
        """Only this machine's own names (another name that leads here is a rebound one), and no other site."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if host.lower() not in self.hosts:
            raise HTTPException(403, f"expected the host {min(self.hosts)}; got {host[:80]!r}")
        if origin is not None and origin.lower().removeprefix("http://") not in self.hosts:
            raise HTTPException(403, f"expected a request of this page; it came from {origin[:80]!r}")

    async def _body(self, headers: Headers, receive: Receive) -> Receive:
        """The whole body, read no further than the limit, to be received again by the app."""
        too_large = HTTPException(
            413,
            f"expected a body of at most {self.limits.body:,} bytes: send a shorter text",
            {"Connection": "close"},
        )
        announced = headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > self.limits.body:
            raise too_large
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise HTTPException(408, "the request ended before its body")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self.limits.body:
                        raise too_large
        except TimeoutError:
            raise HTTPException(408, "the body took too long to come", {"Connection": "close"}) from None
        delivered = False

        async def again() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        return again
