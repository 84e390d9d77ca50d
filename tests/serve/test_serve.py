"""The page's server: what the API answers, what it refuses, and what keeps others out."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from beside import started
from fastapi import FastAPI
from serving import serving, small_run
from starlette.exceptions import HTTPException
from starlette.requests import Request
from torch import nn

from wordward.cli.main import main
from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.explain.explanation import Explanation, from_json
from wordward.explain.swaps import apply
from wordward.perturbation.recipes import RECIPES
from wordward.runs.prediction import Prediction
from wordward.runs.run import Run
from wordward.serve.app import PAGE, create_app, examples_for, listen
from wordward.serve.limits import LimitedApp, Limits
from wordward.serve.queue import WorkQueue
from wordward.serve.schemas import Asked, AskedSwap, Explained, Swapped
from wordward.serve.service import Service

TEXT = "The film was Warm and clever!"
QUESTIONS = ("predict", "explain", "attack", "page")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("tagger"), tagging=True)


@pytest.fixture(scope="module")
def client(run: Run) -> Iterator[httpx.Client]:
    freely = Limits(rate=1e6, burst=10**6)
    with serving(run, limits=freely) as address, httpx.Client(base_url=address) as client:
        yield client


def ask(client: httpx.Client, what: str, **body: Any) -> Any:
    answer = client.post(f"/api/{what}", json={"text": TEXT, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def refusal(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]
    return answer.json()["error"]


def test_the_page_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    first = client.get("/")
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    wanted = re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', first.text)
    assert wanted == ["style.css", "app.js"]
    for name in [file.name for file in PAGE.iterdir() if file.name != "index.html"]:
        answer = client.get(f"/{name}")
        assert answer.status_code == 200
        assert "javascript" in answer.headers["content-type"] or name == "style.css"
        assert "://" not in answer.text
        assert "innerHTML" not in answer.text
        assert "eval(" not in answer.text
    assert "://" not in first.text.replace("http://www.w3.org/2000/svg", "")
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_whether_the_page_is_there_can_be_asked_without_it(client: httpx.Client) -> None:
    for path in ("/", "/app.js"):
        asked, whole = client.head(path), client.get(path)
        assert (asked.status_code, asked.content) == (200, b"")
        assert asked.headers["content-length"] == whole.headers["content-length"]
        assert asked.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/runs", "/openapi.json", "/nowhere", "/api/explain"])
def test_every_answer_carries_the_policy(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    assert rules.pop("frame-ancestors") == "'none'"
    assert rules.pop("img-src") == "'self' data:"
    assert rules == {"script-src": "'self'", "style-src": "'self'", "connect-src": "'self'"}
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in headers)


def test_what_is_served(client: httpx.Client, run: Run) -> None:
    served = client.get("/api/runs").json()
    (one,) = served["runs"]
    assert one["name"] == "iadvt"
    assert one["labels"] == ["bad", "good"]
    assert one["task"] == "classify"
    assert one["trained_with"] == "iadvt"
    assert {method["name"] for method in served["methods"]} == set(RECIPES)
    assert served["methods"][0]["name"] == "iadvt"
    assert served["examples"] == examples_for(run)


def test_openapi_names_every_question_and_its_refusal(client: httpx.Client) -> None:
    api = client.get("/openapi.json").json()
    assert set(api["paths"]) == {f"/api/{name}" for name in ("runs", "swap", *QUESTIONS)}
    for path in api["paths"].values():
        for way in path.values():
            assert way["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith("Problem")
    assert "toward" in api["components"]["schemas"]["Pull"]["properties"]


def test_predict_is_the_runs_own(client: httpx.Client, run: Run) -> None:
    assert ask(client, "predict") == run.predict([TEXT])[0].to_json()


@pytest.mark.parametrize("method", RECIPES)
def test_explain_is_the_librarys_own(client: httpx.Client, run: Run, method: str) -> None:
    label = "bad" if RECIPES[method].objective == "label_loss" else None
    (expected,) = explain(run, [Example(TEXT, label)], method=method, top=2)
    assert from_json(ask(client, "explain", method=method, top=2, label="bad")) == expected


def test_the_answers_schema_is_that_of_an_explanation() -> None:
    assert set(Explained.model_fields) == {"format", *Explanation.__dataclass_fields__}


def test_a_swap_keeps_the_rest_of_the_text(client: httpx.Client, run: Run) -> None:
    text = "😀 The film – שלום – was Warm!"
    (explained,) = explain(run, [Example(text)])
    place = next(place for place in explained.places if place.word == "Warm")
    asked = {"text": text, "start": place.start, "end": place.end, "toward": "dull"}
    assert ask(client, "swap", **asked) == {"text": text.replace("Warm", "Dull"), "toward": "Dull"}
    assert apply(text, [(place, "dull")], lowercase=run.text.lowercase) == text.replace("Warm", "Dull")


def test_an_attack_tells_its_steps(client: httpx.Client, run: Run) -> None:
    found = ask(client, "attack", text="the film was warm and clever , said this friend of mine", max_swaps=6)
    assert found["outcome"] == "flipped"
    assert found["steps"]
    said = run.predict([found["adversarial"]])[0]
    assert found["after"] == said.label != found["before"]
    last = found["steps"][-1]
    assert (last["label"], last["probability"]) == (said.label, said.probabilities[str(said.label)])
    for step in found["steps"]:
        assert found["adversarial"][step["start"] :].startswith(step["toward"])


def test_an_attack_on_what_is_wrong_already(client: httpx.Client) -> None:
    found = ask(client, "attack", label="bad")
    assert (found["outcome"], found["steps"], found["adversarial"]) == ("wrong", [], TEXT)


def test_the_page_to_keep_shows_markup_as_text(client: httpx.Client) -> None:
    views = [{"method": "iadvt"}, {"method": "advt"}]
    answer = client.post("/api/page", json={"text": "<script>alert('warm')</script>", "views": views})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in answer.text
    assert "script" in answer.text
    assert "advt" in answer.text


def test_a_tagger_has_tags_and_a_focus(tagger: Run) -> None:
    text = "well the film are lovely"
    with serving(tagger) as address, httpx.Client(base_url=address) as client:
        served = client.get("/api/runs").json()["runs"][0]
        assert (served["task"], served["positive"]) == ("tag", "i")
        tokens = ask(client, "predict", text=text)["tokens"]
        assert [token["label"] for token in tokens] == ["c", "c", "c", "i", "c"]
        alone = ask(client, "explain", text=text, focus=3, label="c")
        (expected,) = explain(tagger, [Example(text, "c")], focus=3)
        assert from_json(alone) == expected
        assert ask(client, "explain", text=text)["focus"] is None
        assert ask(client, "attack", text=text)["task"] == "tag"
        bad = client.post("/api/explain", json={"text": text, "label": "c"})
        assert "give the focus it is for" in refusal(bad, 422)
        bad = client.post("/api/explain", json={"text": text, "label": "c", "focus": 9})
        assert "expected focus to be a word" in refusal(bad, 422)
        bad = client.post("/api/attack", json={"text": text, "label": "c"})
        assert "label is for classifiers" in refusal(bad, 422)
        fields = client.get("/openapi.json").json()["components"]["schemas"]["AskedAttack"]["properties"]
        assert "focus" not in fields["label"]["description"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"run": "other"}, "expected a run among iadvt; got 'other'"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"method": "baseline"}, "expected one method"),
        ({"label": "nice"}, "expected a label that the model knows"),
        ({"focus": 1}, "focus is for taggers"),
        ({"focus": -1}, "focus: Input should be greater than or equal to 0"),
        ({"top": 99}, "top: Input should be less than or equal to 10"),
        ({"text": 5}, "text: Input should be a valid string"),
        ({"text": ""}, "the text is empty"),
        ({"text": "😀 ?!"}, "no words to read"),
        ({"text": "warm " * 20_000}, "100,000 characters; at most 20,000"),
        ({"text": "a " * 9_000}, "9,000 words; at most 3,000"),
        ({"texts": [TEXT]}, "texts: Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_explained_is_said(client: httpx.Client, body: dict[str, Any], said: str) -> None:
    assert said in refusal(client.post("/api/explain", json={"text": TEXT, **body}), 422)


def test_words_that_the_model_has_never_seen(client: httpx.Client) -> None:
    assert ask(client, "predict", text="שלום qqq")["warning"] == "no word of this text is in the vocabulary"
    assert not any(place["known"] for place in ask(client, "explain", text="שלום qqq")["places"])


def test_broken_requests_get_json_too(client: httpx.Client) -> None:
    as_json = {"Content-Type": "application/json"}
    unread = refusal(client.post("/api/explain", content=b"{", headers=as_json), 422)
    assert unread.startswith("expected JSON; got something else at character 1: ")
    deep = b'{"text": ' + b"[" * 20_000
    assert "JSON of a few levels" in refusal(client.post("/api/explain", content=deep, headers=as_json), 422)
    untold = refusal(client.post("/api/explain", data={"text": TEXT}), 422)
    assert untold.startswith("expected the header Content-Type: application/json; got application/x-www-form")
    assert "text: Field required" in refusal(client.post("/api/explain", json={}), 422)
    surrogate = b'{"text": "warm \\ud800"}'
    assert "text: expected whole characters" in refusal(
        client.post("/api/explain", content=surrogate, headers=as_json), 422
    )
    assert refusal(client.get("/nowhere"), 404) == "GET /nowhere: Not Found"
    assert refusal(client.get("/api/explain"), 405) == "GET /api/explain: Method Not Allowed"
    far = {"text": TEXT, "start": 40, "end": 45, "toward": "dull"}
    assert "within the 29 characters" in refusal(client.post("/api/swap", json=far), 422)
    assert "at most 600" in refusal(client.post("/api/attack", json={"text": "a " * 700}), 422)


class Broken(nn.Module):
    def forward(self, *_: object) -> None:
        raise RuntimeError("this model fails")


def test_a_failure_inside_is_json_without_its_inside(run: Run) -> None:
    broken = replace(run, model=Broken())  # type: ignore[arg-type]
    with serving(broken) as address:
        answer = httpx.post(f"{address}/api/predict", json={"text": TEXT})
    assert "this model" not in refusal(answer, 500)
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil"]
)
def test_another_host_name_is_refused(client: httpx.Client, host: str) -> None:
    headers = {"Host": host.format(port=client.base_url.port)}
    assert "expected the host" in refusal(client.get("/", headers=headers), 403)


def test_the_names_of_this_machine_are_taken(client: httpx.Client) -> None:
    for host in ("localhost", "LOCALHOST", "[::1]", "127.0.0.1"):
        assert client.get("/", headers={"Host": f"{host}:{client.base_url.port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_a_request_of_another_site_is_refused(client: httpx.Client, origin: str) -> None:
    answer = client.post("/api/predict", json={"text": TEXT}, headers={"Origin": origin})
    assert "expected a request of this page" in refusal(answer, 403)


def exchange(client: httpx.Client, *parts: bytes) -> bytes:
    """Bytes over a socket of one's own, and all that comes back."""
    port = client.base_url.port or 0
    with socket.create_connection(("127.0.0.1", port), timeout=20) as there:
        head = f"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        for part in (head.encode(), *parts):
            there.sendall(part)
        there.settimeout(20)
        came = b""
        while some := there.recv(65536):
            came += some
            if b"}" in came:
                break
        return came


def test_a_large_body_is_refused_before_it_comes(client: httpx.Client) -> None:
    answer = exchange(client, b"Content-Length: 9999999\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"at most 262,144 bytes" in answer


def test_a_large_body_in_chunks_is_refused_at_the_limit(client: httpx.Client) -> None:
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = exchange(client, b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 5)
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_come_is_given_up(run: Run) -> None:
    with serving(run, limits=Limits(body_seconds=0.2)) as address, httpx.Client(base_url=address) as client:
        assert exchange(client, b"Content-Length: 50\r\n\r\n{").startswith(b"HTTP/1.1 408")


def test_too_many_requests_a_second(run: Run) -> None:
    with serving(run, limits=Limits(rate=0.01, burst=2)) as address, httpx.Client(base_url=address) as client:
        assert [client.post("/api/predict", json={"text": TEXT}).status_code for _ in range(2)] == [200, 200]
        answer = client.post("/api/predict", json={"text": TEXT})
        assert "requests a second" in refusal(answer, 429)
        assert answer.headers["retry-after"]
        assert client.get("/").status_code == 200  # the page itself still comes


def test_a_burst_is_followed_by_a_pause() -> None:
    app = LimitedApp(FastAPI(), port=80, limits=Limits(rate=2.0, burst=3))
    for now in (100.0, 900.0):
        for _ in range(3):
            app.check_rate(now)
        with pytest.raises(HTTPException, match=r"try again in 1\.5 s"):
            app.check_rate(now)
        with pytest.raises(HTTPException, match=r"try again in 0\.1 s"):
            app.check_rate(now + 1.4)
        app.check_rate(now + 1.5)


def request(gone: bool = False) -> Request:
    async def receive() -> dict[str, str]:
        if not gone:
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    return Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)  # type: ignore[arg-type]


def test_one_computation_at_a_time_and_few_wait() -> None:
    at_work, most, done, go = 0, 0, [], threading.Event()

    def work() -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        assert go.wait(20)
        at_work -= 1
        done.append(1)

    async def all_at_once() -> list[Any]:
        queue = WorkQueue(3)
        tasks = [asyncio.create_task(queue.run(request(), work)) for _ in range(5)]
        tasks.append(asyncio.create_task(queue.run(request(gone=True), work)))
        await asyncio.sleep(0.05)
        go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(all_at_once())
    assert [getattr(each, "status_code", each) for each in found] == [None, None, None, 503, 503, 503]
    assert most == 1
    assert len(done) == 3


def test_a_swap_waits_for_its_turn(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hugging Face tokenizer is set up anew for each call, so that two threads at once would disturb each other."""
    order, begun, go = [], threading.Event(), threading.Event()

    def slow(self: Service, *asked: Asked) -> list[Prediction]:
        begun.set()
        assert go.wait(20)
        order.append("predict")
        return [Prediction(one.text) for one in asked]

    def swap(self: Service, asked: AskedSwap) -> Swapped:
        order.append("swap")
        return Swapped(text=asked.text, toward=asked.toward)

    monkeypatch.setattr(Service, "predict", slow)
    monkeypatch.setattr(Service, "swap", swap)
    with serving(run) as address, ThreadPoolExecutor(2) as pool:
        first = pool.submit(httpx.post, f"{address}/api/predict", json={"text": TEXT})
        assert begun.wait(20)
        asked = {"text": TEXT, "start": 13, "end": 17, "toward": "dull"}
        second = pool.submit(httpx.post, f"{address}/api/swap", json=asked)
        with pytest.raises(TimeoutError):
            second.result(0.3)
        go.set()
        assert [each.result(20).status_code for each in (first, second)] == [200, 200]
    assert order == ["predict", "swap"]


def test_who_has_gone_is_not_computed_for() -> None:
    async def one() -> None:
        await WorkQueue(1).run(request(gone=True), lambda: pytest.fail("computed"))

    with pytest.raises(HTTPException) as given_up:
        asyncio.run(one())
    assert given_up.value.status_code == 408


def test_runs_are_named_apart_and_of_one_task(run: Run, tagger: Run) -> None:
    twin = replace(run, folder=run.folder.parent / "more" / "iadvt")
    with serving(run, twin) as address:
        names = [each["name"] for each in httpx.get(f"{address}/api/runs").json()["runs"]]
        asked = {"text": TEXT, "run": names[1]}
        assert httpx.post(f"{address}/api/explain", json=asked).json()["model"] == names[1]
    assert names == [f"{run.folder.parent.name}/iadvt", "more/iadvt"]
    with pytest.raises(ValueError, match="name each once"):
        create_app([run, run], port=1)
    with pytest.raises(ValueError, match="two of the same task; got a classifier and a tagger"):
        create_app([run, tagger], port=1)


def test_a_taken_port_is_said_and_another_suggested(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with listen(0) as there:
        port = there.getsockname()[1]
        assert main(["serve", str(run.folder), "--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert f"port {port} is taken: choose another, such as --port " in said
    free = int(said.rsplit(" ", 1)[1])
    assert free != port
    listen(free).close()


def test_serve_refuses_what_is_no_run_or_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path), "--port", "0"]) == 1
    assert "is not a run folder" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--port", "70000"]) == 1
    assert "expected a port" in capsys.readouterr().err


def test_without_its_extra_the_install_is_told(run: Run) -> None:
    code = "import sys; sys.modules['fastapi'] = None; from wordward.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", str(run.folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'wordward[serve]'" in done.stderr


class Command:
    """`wordward serve` as a person starts it."""

    def __init__(self, *arguments: str, said: Path) -> None:
        self.process = started("wordward.cli.main", ["serve", *arguments], said)
        while not said.exists() or not said.read_text().endswith("\n"):
            assert self.process.is_alive(), said.read_text()
            time.sleep(0.02)
        self.said = said.read_text()
        self.address = re.findall(r"http://\S+", self.said)[0].rstrip("/")

    def stop(self) -> int | None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGINT)
        self.process.join(timeout=20)
        return self.process.exitcode


@pytest.mark.slow
def test_the_command_serves_until_it_is_stopped(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    examples = tmp_path / "mine.jsonl"
    examples.write_text("".join(json.dumps({"text": f"the film was warm {at}"}) + "\n" for at in range(30)))
    command = Command(
        str(run.folder), "--port", "0", "--examples", str(examples), "--device", "cpu", said=tmp_path / "said"
    )
    try:
        assert command.address.startswith("http://127.0.0.1:")
        assert "Ctrl-C" in command.said
        served = httpx.get(f"{command.address}/api/runs").json()
        assert served["examples"] == [f"the film was warm {at}" for at in range(12)]
        said = httpx.post(f"{command.address}/api/predict", json={"text": TEXT}).json()
        assert said == run.predict([TEXT])[0].to_json()
    finally:
        assert command.stop() in (0, 130)


@pytest.mark.parametrize(("known", "offered"), [([], 0), ([True] * 3, 0), ([True] * 12, 4)])
def test_examples_are_texts_that_the_run_reads(known: list[bool], offered: int) -> None:
    run = SimpleNamespace(tagging=False, read=lambda _: SimpleNamespace(known=known))
    assert len(examples_for(cast(Run, run))) == offered
