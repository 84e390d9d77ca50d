"""Small runs, and a real server for them on a free port of this machine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from reviews import reviews, tagged, write_conll

from wordward.config.settings import DataSettings, ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.perturbation.settings import MethodSettings
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.serve.app import create_app, listen, server
from wordward.train.training import train


def small_run(folder: Path, *, method: str = "iadvt", tagging: bool = False) -> Run:
    """A run trained for a moment on our own sentences."""
    if tagging:
        file = write_conll(folder / "tags.conll", tagged(160))
    else:
        file = folder / "reviews.jsonl"
        file.write_text(_json_lines(reviews(240)))
    config = TrainConfig(
        method=method,
        data=DataSettings(train=str(file)),
        text=TextSettings(lowercase=not tagging),
        model=ModelSettings(dim=12, hidden=12, head=6),
        perturbation=MethodSettings(epsilon=1.0, k=5),
        training=TrainingSettings(epochs=4, learning_rate=0.02, min_candidate_count=1, device="cpu"),
    )
    train(config, folder / method, quiet=True)
    return load_run(folder / method, device="cpu")


def _json_lines(examples: Sequence[Example]) -> str:
    return "".join(f'{{"text": "{example.text}", "label": "{example.label}"}}\n' for example in examples)


@contextmanager
def serving(*runs: Run, **how: Any) -> Iterator[str]:
    """The address of a server that answers for the runs."""
    with listen(0) as there:
        port = there.getsockname()[1]
        running = server(create_app(runs, port=port, **how))
        thread = Thread(target=running.run, kwargs={"sockets": [there]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            running.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
