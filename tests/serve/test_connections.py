"""Connections to the page's server: answers leave at once, and nobody holds one open for ever."""

import asyncio
import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from serving import serving
from untrained import a_run

from wordward.serve.protocol import PatientProtocol
from wordward.serve.schemas import Served
from wordward.serve.service import Service


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with serving(a_run(k=3)) as address, httpx.Client(base_url=address) as client:
        yield client


def seconds_until_closed(client: httpx.Client, first: bytes, then: bytes) -> float:
    """How long a connection lasts on which `first` is sent, and `then` every 50 ms."""
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=0.05) as there:
        began = time.monotonic()
        there.sendall(first)
        while time.monotonic() - began < 10:
            try:
                if not there.recv(65536):
                    break
            except TimeoutError:
                there.sendall(then)
            except OSError:
                break
        return time.monotonic() - began


def test_answers_do_not_wait_for_acknowledgements(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[int] = []
    made = PatientProtocol.connection_made

    def watched(self: PatientProtocol, transport: asyncio.Transport) -> None:
        end = transport.get_extra_info("socket")
        options.append(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(self, transport)

    monkeypatch.setattr(PatientProtocol, "connection_made", watched)
    assert client.get("/").status_code == 200
    assert [bool(option) for option in options] == [True]


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\n"])
def test_headers_that_never_end_are_given_up(
    first: bytes, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PatientProtocol, "head_seconds", 0.3)
    then = b"X-More: x\r\n" if first else b""
    assert 0.2 < seconds_until_closed(client, first, then) < 5


def test_a_second_request_has_the_same_time(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatientProtocol, "head_seconds", 0.3)
    host = f"Host: 127.0.0.1:{client.base_url.port}\r\n".encode()
    whole = b"GET / HTTP/1.1\r\n" + host + b"\r\n"
    assert 0.2 < seconds_until_closed(client, whole, b"GET / HTTP/1.1\r\nX-More: x\r\n") < 4


def test_a_long_answer_is_not_cut_off(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is for headers to come, not for the work that follows."""
    served = Service.served

    def slowly(self: Service, examples: list[str]) -> Served:
        time.sleep(0.4)
        return served(self, examples)

    monkeypatch.setattr(PatientProtocol, "head_seconds", 0.1)
    monkeypatch.setattr(Service, "served", slowly)
    assert client.get("/api/runs").status_code == 200
