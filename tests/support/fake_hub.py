"""A hub on this machine: the few answers that huggingface_hub asks for when a folder is uploaded."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hub(ThreadingHTTPServer):
    """Keeps what is uploaded; `token`: what it lets in."""

    def __init__(self, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.token = token
        self.repos: dict[str, dict[str, Any]] = {}  # what each was made with
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: Hub  # type: ignore[assignment]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(self.path)
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._say({"error": "Invalid username or password."}, 401)
        elif self.path == "/api/repos/create":
            made = json.loads(body)
            name = f"{made.get('organization', 'me')}/{made['name']}"
            self.server.repos[name] = made
            self._say({"url": f"{self.server.address}/{name}"})
        elif self.path == "/api/validate-yaml":
            self._say({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [{"path": each["path"], "uploadMode": "regular"} for each in json.loads(body)["files"]]
            self._say({"files": [each | {"shouldIgnore": False, "oid": None} for each in files]})
        elif "/commit/" in self.path:
            for line in body.splitlines():
                one = json.loads(line)
                if one["key"] == "file":
                    self.server.files[one["value"]["path"]] = base64.b64decode(one["value"]["content"])
            self._say(
                {"commitUrl": f"{self.server.address}/me/mine/commit/1", "commitOid": "1", "pullRequestUrl": None}
            )
        else:
            self._say({"error": "not found"}, 404)

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self._say({"sha": "0" * 40, "id": "me/mine", "siblings": []})

    def _say(self, answer: Any, status: int = 200) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def fake_hub(token: str = "let-me-in") -> Iterator[Hub]:
    """A hub that answers inside the block."""
    with Hub(token) as hub:
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
