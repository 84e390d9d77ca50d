"""Tables as programs write them: other marks between fields, quoted TSV; never a guess that changes a text."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordward.datasets import DataError, Example, read
from wordward.datasets.columns import Columns
from wordward.datasets.tables import MARKS, is_quoted, mark_of

ROWS = [
    ("A warm, funny film; twice", "good"),
    ('He said "never" and left', "bad"),
    ("two\nlines | one\ttab", "good"),
]


def written(folder: Path, name: str, content: str) -> Path:
    (folder / name).write_text(content, encoding="utf-8", newline="")
    return folder / name


def as_csv(rows: list[tuple[str, str]], mark: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=mark, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return buffer.getvalue()


def pairs(examples: list[Example]) -> list[tuple[str, str | None]]:
    return [(example.text, example.label) for example in examples]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_the_first_line_tells_the_mark(tmp_path, mark: str, name: str, quoting: int):
    content = as_csv([("text", "label"), *ROWS], mark, quoting)
    assert pairs(read(written(tmp_path, name, content))) == ROWS


@pytest.mark.parametrize("mark", MARKS)
def test_other_columns_do_not_confuse_it(tmp_path, mark: str):
    content = as_csv([("id;, x", "review", "stars")], mark) + as_csv([("1", "fine; or not, or", "5")], mark)  # type: ignore[list-item]
    examples = read(written(tmp_path, "a.csv", content), text_column="review", label_column="stars")
    assert pairs(examples) == [("fine; or not, or", "5")]


def test_columns_by_number_need_rows_that_are_alike(tmp_path):
    by_number: Any = {"text_column": "0", "label_column": "1"}
    content = "warm, funny and bright;good\ncold; bad\ndull, and long, and cold;bad\n"
    assert pairs(read(written(tmp_path, "a.csv", content), **by_number)) == [
        ("warm, funny and bright", "good"),
        ("cold", "bad"),
        ("dull, and long, and cold", "bad"),
    ]
    # Commas that are alike win, and no mark at all is refused as before.
    assert pairs(read(written(tmp_path, "b.csv", "a;b,good\nc;d,bad\n"), **by_number)) == [
        ("a;b", "good"),
        ("c;d", "bad"),
    ]
    with pytest.raises(DataError, match="line 2: expected 2 fields as in the first line; got 3"):
        read(written(tmp_path, "c.csv", "warm,good\na, b,bad\n"), **by_number)


def test_texts_without_a_header_are_not_joined_to_their_labels(tmp_path):
    # One field under another mark would make "warm, really,good" a text.
    with pytest.raises(DataError, match="expected 2 fields"):
        read(written(tmp_path, "a.csv", "cold,bad\nwarm, really,good\n"), text_column="0", labelled=False)


PLAIN = [
    'text\tlabel\n"Stop" he said\tx\nan 8" screen\ty\n',  # begins with a quote, but is not a field in quotes
    'text\tlabel\n"Stop"\tx\nfine\ty\n',  # a whole text in quotes, none doubled: a title, as in corpora
    'text\tlabel\n"never again\tx\na screen of 8"\ty\nfine\tx\n',  # a quote that would swallow two rows
    'text\tlabel\n"a ""b"" c"\tx\n"open\ty\n',  # doubled, but another field is not so written
]


@pytest.mark.parametrize("content", PLAIN)
def test_quotes_without_evidence_are_plain_characters(tmp_path, content: str):
    path = written(tmp_path, "a.tsv", content)
    assert not is_quoted(path)
    rows = [tuple(line.split("\t")) for line in content.splitlines()[1:]]
    assert pairs(read(path)) == rows


def test_the_line_of_a_row_in_a_quoted_tsv(tmp_path):
    path = written(tmp_path, "a.tsv", 'text\tlabel\n"one\ntwo"\tx\nthree\ty\n')
    assert [example.line for example in read(path)] == [2, 4]


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1).map(str.strip),
            st.sampled_from(["a", "b", "1"]),
        ).filter(lambda row: bool(row[0])),
        min_size=1,
    ),
    st.sampled_from(MARKS),
)
def test_what_any_program_writes_comes_back(tmp_path_factory, rows: list[tuple[str, str]], mark: str):
    folder = tmp_path_factory.mktemp("tables")
    content = as_csv([("text", "label"), *rows], mark, csv.QUOTE_ALL)
    path = written(folder, "a.csv", content)
    assert mark_of(path, Columns(), ",") == mark
    assert pairs(read(path)) == rows
