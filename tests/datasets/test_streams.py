"""Standard input and pipes: recognised by what they hold, read as often as needed, named in errors."""

import io
import json
import os
import sys
import threading
from pathlib import Path

import openpyxl
import pytest

from wordward.datasets import DataError, Example, read, streams
from wordward.text.loading import file_at_hand


@pytest.fixture
def typed(monkeypatch):
    """Something that comes in on standard input."""

    def put(content: str | bytes) -> str:
        raw = content.encode() if isinstance(content, str) else content
        streams.kept.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        return "-"

    yield put
    streams.kept.cache_clear()


PAIRS = [Example("a warm, funny film", "good"), Example("dull", "bad")]
CONLL = "".join(f"{name} B-PER\nslept O\n\n" for name in ("Anna", "Bruno"))


@pytest.mark.parametrize(
    "content",
    [
        'text,label\n"a warm, funny film",good\ndull,bad\n',
        "label;text\ngood;a warm, funny film\nbad;dull\n",
        "text\tlabel\na warm, funny film\tgood\ndull\tbad\n",
        "".join(json.dumps({"text": each.text, "label": each.label}) + "\n" for each in PAIRS),
    ],
)
def test_a_table_or_records(typed, content: str):
    path = typed(content)
    for _ in range(2):  # all of it is there each time
        assert [(each.text, each.label) for each in read(path)] == [(each.text, each.label) for each in PAIRS]
    assert [each.text for each in read(path, labelled=False)] == [each.text for each in PAIRS]


def test_lines_of_text_and_tagged_sentences(typed):
    assert [each.text for each in read(typed("a warm film\ndull, cold\n"), labelled=False)] == [
        "a warm film",
        "dull, cold",
    ]
    assert [each.tags for each in read(typed(CONLL))] == [("B-PER", "O")] * 2
    assert [each.text for each in read(typed(CONLL), labelled=False)] == ["Anna slept", "Bruno slept"]


def test_a_workbook(typed, tmp_path):
    book = openpyxl.Workbook()
    for row in (["text", "label"], ["warm", "good"]):
        book.worksheets[0].append(row)
    book.save(tmp_path / "a.xlsx")
    assert read(typed((tmp_path / "a.xlsx").read_bytes())) == [Example("warm", "good", line=2)]


def test_columns_by_number(typed):
    assert read(typed("good;warm\nbad;dull\n"), text_column="1", label_column="0")[1] == Example(
        "dull", "bad", line=2
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (" \n", "^standard input: expected one or more texts; found none"),
        ("just a text\n", "^standard input: expected labels; plain text has none.*`format='conll'`"),
        ("text,label\nwarm,good\n,bad\n", "^standard input, line 3: expected a text; it is empty"),
        ('{"text": 1}\n', "^standard input, line 1: expected a string"),
    ],
)
def test_errors_name_it(typed, content: str, said: str):
    with pytest.raises(DataError, match=said):
        read(typed(content))


def test_a_pipe_is_read_whole_although_its_first_line_is_looked_at(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    rows = "".join(f"text {number};good\n" for number in range(200))
    writer = threading.Thread(target=lambda: pipe.write_text(f"text;label\n{rows}"))
    writer.start()
    assert [each.text for each in read(Path(file_at_hand(str(pipe))))] == [f"text {number}" for number in range(200)]
    writer.join()
