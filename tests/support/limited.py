"""Training within little memory on texts that would not fit into it, run by test_scale in a process of its own."""

import resource
import sys
from pathlib import Path

import numpy as np
import torch
from reviews import reviews, write_csv

from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    PretrainConfig,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import read
from wordward.text import on_disk
from wordward.text.corpus import Corpus, Stream
from wordward.text.ragged import Rows
from wordward.text.windows import Reader
from wordward.train.pretraining import pretrain
from wordward.train.training import train

CPU = torch.device("cpu")
TEXTS, LENGTH = 1_000_000, 1_000  # of the mapped file: 4 GB of ids
SMALL = ModelSettings(dim=6, hidden=6, head=6)
MIB = 1 << 20


def limit(spare: int) -> None:
    """Allow `spare` bytes more than this process has now; mapped files do not count."""
    status = Path("/proc/self/status").read_text()
    held = int(status.split("VmData:")[1].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (held + spare, resource.RLIM_INFINITY))


def refused(what: str, work: object) -> None:
    """Make sure that the limit holds."""
    try:
        work()  # type: ignore[operator]
    except (MemoryError, RuntimeError):
        return
    raise AssertionError(f"{what} fits into memory, so nothing was shown")


def write_files(folder: Path) -> None:
    """Labelled texts, many more without labels, and the ids of a corpus of 4 GB, nearly all of it a hole."""
    texts = reviews(2_000, seed=1)
    write_csv(folder / "train.csv", texts[:80])
    many = "".join(f"{example.text}\n" for example in texts)
    with (folder / "many.txt").open("w") as file:
        for _ in range(50):
            file.write(many)
    with (folder / "ids").open("wb") as file:
        file.truncate(4 * TEXTS * LENGTH)


def configs(folder: Path) -> tuple[TrainConfig, PretrainConfig]:
    many = str(folder / "many.txt")
    training = TrainConfig(
        method="iadvt+ivat",
        pretrained=str(folder / "lm"),
        data=DataSettings(train=str(folder / "train.csv"), unlabelled=many),
        model=SMALL,
        perturbation=MethodSettings(k=3),
        training=TrainingSettings(epochs=2, device="cpu"),
    )
    reading = PretrainConfig(texts=(many,), minutes=0.005, held_out_share=1e-4, model=SMALL, device="cpu")
    return training, reading


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.backends.mkldnn.set_flags(False)  # which keeps compiled code for every length of a batch
    write_files(folder)
    training, reading = configs(folder)
    train(TrainConfig(data=DataSettings(train=str(folder / "train.csv")), model=SMALL,
                      training=TrainingSettings(epochs=1, device="cpu")), folder / "warm", quiet=True)  # fmt: skip
    on_disk.LARGE = MIB
    limit(16 * MIB)
    refused("all texts at once", lambda: read(folder / "many.txt", labelled=False))
    print("words read:", pretrain(reading, folder / "lm", quiet=True)["words"])
    print("texts:", train(training, folder / "run", quiet=True)["texts"]["unlabelled"])

    flat = np.memmap(folder / "ids", dtype=np.int32, mode="r")
    limit(192 * MIB)
    rows = Rows(flat, np.arange(0, len(flat) + 1, LENGTH))
    refused("a copy of the ids", lambda: np.array(flat))
    stream = Stream(Corpus(rows) + Corpus(rows[:1000]), 32, seed=(0, 1))
    print("a batch:", *stream.next(CPU).ids.shape)
    windows = Reader(rows, 8, 100).windows(np.random.default_rng(0))
    print("windows:", sum(len(next(windows)[0]) for _ in range(40)) // 8)
    print("words:", Corpus(rows[:20_000]).word_counts(5)[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
