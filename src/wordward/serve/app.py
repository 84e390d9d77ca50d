"""The local web page, and its JSON API."""

import errno
import os
import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.explain.explanation import to_json
from wordward.runs.run import Run
from wordward.serve import schemas
from wordward.serve.limits import LimitedApp, Limits
from wordward.serve.protocol import PatientProtocol
from wordward.serve.queue import WorkQueue
from wordward.serve.service import Service
from wordward.support.errors import RunError, SettingError, WordwardError
from wordward.support.version import __version__

PAGE = Path(__file__).parent / "page"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
ADDRESS = "127.0.0.1"
OURS = {
    "classify": (
        "The cast is good and the ending is a delight.",
        "A boring film with a weak script.",
        "I laughed once, near the start, and never again.",
        "Slow, but warm and honest: better than I had hoped.",
    ),
    "tag": (
        "Well , the film are lovely .",
        "She like to practise the piano with her friends .",
        "We was late because the train do not come .",
    ),
}


def create_app(
    runs: Sequence[Run], *, port: int, examples: Sequence[str] | None = None, limits: Limits | None = None
) -> ASGIApp:
    """The page and its API for one run, or for two to compare, served at that port of this machine.

    Args:
        runs: One run, or two of the same task.
        port: The port at which a server such as uvicorn will serve it.
        examples: Texts that the page offers; by default ours that the run can read.
        limits: How much may be asked at a time.

    Returns:
        An ASGI application.

    Examples:
        >>> from wordward.serve import create_app
        >>> app = create_app([run], port=8000)  # uvicorn.run(app, port=8000)
        >>> callable(app)
        True
    """
    if not 1 <= len(runs) <= 2 or len({run.tagging for run in runs}) > 1:
        kinds = " and ".join("a tagger" if run.tagging else "a classifier" for run in runs) or "none"
        raise RunError(f"expected one run, or two of the same task; got {kinds}")
    limits = limits or Limits()
    service = Service(runs, limits)
    app = FastAPI(
        title="wordward",
        version=__version__,
        description="Predictions, explanations and adversarial texts of a trained run.",
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
        responses={status: {"model": schemas.Problem} for status in (403, 413, 422, 429, 503)},
    )
    _add_errors(app)
    _add_page(app)
    _add_api(app, service, WorkQueue(limits.waiting), examples_for(runs[0]) if examples is None else list(examples))
    return LimitedApp(app, port=port, limits=limits)


def examples_for(run: Run) -> list[str]:
    """Those of our own sentences that the run can read: half of the words known, or more."""
    readable = []
    for text in OURS["tag" if run.tagging else "classify"]:
        known, words = run.read(Example(text)).known, len(text.split())
        if 2 * sum(known) >= words:  # of which some runs drop those that they do not know
            readable.append(text)
    return readable


def warm_up(runs: Sequence[Run]) -> None:
    """Let each run explain once, so that the first text on the page does not wait for one-time setup."""
    for run in runs:
        known = run.vocabulary.word(int(run.vocabulary.candidates()[-1]))
        explain(run, [Example(known)], method="advt")


def _add_api(app: FastAPI, service: Service, queue: WorkQueue, examples: Sequence[str]) -> None:
    """The API; one thing is computed at a time, predictions and explanations that wait together."""

    @app.get("/api/runs")
    def runs() -> schemas.Served:
        """What is served: runs with their labels, methods, limits and examples."""
        return service.served(examples)

    @app.post("/api/predict", response_model_exclude_none=True)
    async def predict(asked: schemas.Asked, request: Request) -> schemas.Predicted:
        """The label of a text, or a tagger's tags."""
        return schemas.Predicted(**(await queue.answer(request, service.predict_all, asked)).to_json())

    @app.post("/api/explain")
    async def explained(asked: schemas.AskedExplain, request: Request) -> schemas.Explained:
        """The words that pull each word of a text, and how strongly."""
        return schemas.Explained(**to_json(await queue.answer(request, service.explain_all, asked)))

    @app.post("/api/swap")
    async def swap(asked: schemas.AskedSwap, request: Request) -> schemas.Swapped:
        """The text with one word swapped, all else as it was."""
        return await queue.run(request, lambda: service.swap(asked))  # a tokenizer serves one thread at a time

    @app.post("/api/attack")
    async def attack(asked: schemas.AskedAttack, request: Request) -> schemas.Attack:
        """Swaps that change the prediction, one by one."""
        return await queue.run(request, lambda: service.attack(asked))

    @app.post("/api/page", response_class=Response, responses={200: {"content": {"text/html": {}}}})
    async def page(asked: schemas.AskedPage, request: Request) -> HTMLResponse:
        """One explanation, or two side by side, as a page of its own to keep or send."""
        return HTMLResponse(await queue.run(request, lambda: service.page(asked)))


def _add_page(app: FastAPI) -> None:
    """The files of the page, read once."""

    def give(content: bytes, kind: str) -> Callable[[], Response]:
        return lambda: Response(content, media_type=kind)

    for file in sorted(PAGE.iterdir()):
        if file.suffix in KINDS:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            answer = give(file.read_bytes(), KINDS[file.suffix])
            app.add_api_route(path, answer, methods=["GET", "HEAD"], include_in_schema=False)


def _add_errors(app: FastAPI) -> None:
    """Every error as JSON that says what is wrong."""

    def problem(status: int, text: str, headers: Any = None) -> JSONResponse:
        return JSONResponse({"error": text}, status, headers)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:  # FastAPI's, of a body that JSON's reader gave up
            return problem(422, "expected JSON of a few levels; got a body that could not be read")
        what = f"{request.method} {request.url.path}: " if error.status_code in (404, 405) else ""
        return problem(error.status_code, f"{what}{error.detail}", error.headers)

    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> JSONResponse:
        kind = request.headers.get("Content-Type", "none")
        if request.method == "POST" and "json" not in kind:
            return problem(422, f"expected the header Content-Type: application/json; got {kind}")
        problems = [
            f"{'.'.join(map(str, one_error['loc'][1:])) or 'body'}: {one_error['msg'].removeprefix('Value error, ')}"
            if one_error["type"] != "json_invalid"
            else f"expected JSON; got something else at character {one_error['loc'][-1]}: {one_error['ctx']['error']}"
            for one_error in error.errors()
        ]
        return problem(422, "; ".join(problems))

    @app.exception_handler(WordwardError)
    async def unusable(request: Request, error: WordwardError) -> JSONResponse:
        return problem(422, str(error))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        return problem(500, "something went wrong here; the terminal of `wordward serve` says more")


def listen(port: int) -> socket.socket:
    """A socket on this port, opened first; raises an error if the port is taken."""
    # With its protocol named: else asyncio leaves TCP_NODELAY off, and answers may wait 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # elsewhere it would let two servers share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen()
    except OSError as error:
        listener.close()
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        with socket.socket() as free:
            free.bind((ADDRESS, 0))
            other = free.getsockname()[1]
        raise SettingError("port", f"port {port} {why}: choose another, such as `port={other}`") from None
    return listener


def serve(app: ASGIApp, listener: socket.socket, *, open_page: bool = False) -> None:
    """Answer until stopped."""
    if open_page:  # the socket listens already: the browser waits for the first answer
        webbrowser.open(f"http://{ADDRESS}:{listener.getsockname()[1]}/")
    server(app).run(sockets=[listener])


def server(app: ASGIApp) -> uvicorn.Server:
    """A quiet server without what is not needed here."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=PatientProtocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
        )
    )
