"""HTTP as uvicorn speaks it, with an end to waiting for a request's headers."""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """Closes a connection whose next request has not come with all its headers in time.

    uvicorn itself waits for ever where none came before, and begins anew with every byte where one did.
    """

    head_seconds: ClassVar[float] = 10.0  # for a request's headers to come

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._until: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def _watch(self) -> None:
        """Count the time while headers are missing: from the connection, or from the first byte of a request."""
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._until is None:
            self._until = self.loop.call_later(self.head_seconds, self.transport.close)

    def _forget(self) -> None:
        if self._until is not None:
            self._until.cancel()
            self._until = None
