"""The picture of IMDB's records: drawn from them alone, always the same."""

from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.results import load
from experiments.tables import IMDB

pytest.importorskip("matplotlib", reason="needs pip install 'wordward[figure]'")
RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def test_the_picture_shows_the_records(tmp_path: Path) -> None:
    from experiments.picture import draw

    records = load(RESULTS / f"{IMDB.name}.jsonl")
    drawn = []
    for name in ("one.svg", "two.svg"):
        assert main(["picture", str(tmp_path / name), "--folder", str(RESULTS)]) == 0
        drawn.append((tmp_path / name).read_text(encoding="utf-8"))
    assert drawn[0] == drawn[1]
    for title in ("Baseline", "iVAT-Text", "the paper", "only words that keep the sense", "words swapped, at most"):
        assert title in drawn[0]
    fewer = [record for record in records if record["row"] != "iadvt"]
    draw(IMDB, fewer, tmp_path / "fewer.svg")
    assert (tmp_path / "fewer.svg").read_text(encoding="utf-8").count("iAdvT-Text") < drawn[0].count("iAdvT-Text")


def test_what_was_not_attacked_is_left_out(tmp_path: Path) -> None:
    from experiments.picture import draw

    records = load(RESULTS / f"{IMDB.name}.jsonl")
    records = [{name: value for name, value in each.items() if name != "attacked"} for each in records]
    draw(IMDB, records, tmp_path / "none.png")
    assert (tmp_path / "none.png").read_bytes()[:4] == b"\x89PNG"
