"""Excel workbooks: the sheet with the columns, numbers as they are shown, and what is said without openpyxl."""

import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest

from wordward.datasets import DataError, Example, read
from wordward.support.errors import MissingExtraError


def book(folder: Path, **sheets: list[list]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.worksheets[0])
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(folder / "a.xlsx")
    return folder / "a.xlsx"


def test_texts_and_labels_as_they_are_shown(tmp_path):
    path = book(
        tmp_path, one=[["id", "text", "label"], [1, "a warm film ", 5.0], [], [2, "dull; cold", 4.5], [3, 12, True]]
    )
    assert read(path) == [
        Example("a warm film", "5", line=2),
        Example("dull; cold", "4.5", line=4),
        Example("12", "true", line=5),
    ]


def test_the_sheet_that_has_the_columns(tmp_path):
    path = book(tmp_path, notes=[["made by hand"]], texts=[["label", "text"], ["x", "warm"], ["y", "dull"]])
    assert [example.text for example in read(path)] == ["warm", "dull"]


def test_by_number_without_a_header(tmp_path):
    path = book(tmp_path, one=[["warm", "good"], ["dull", "bad"]])
    assert [example.label for example in read(path, text_column="0", label_column="1")] == ["good", "bad"]


def test_an_empty_cell_is_an_empty_text_or_label(tmp_path):
    path = book(tmp_path, one=[["label", "text"], ["x", "warm"], ["y", None]])
    with pytest.raises(DataError, match="line 3: expected a text; it is empty"):
        read(path)
    assert len(read(path, skip_empty=True)) == 1
    path = book(tmp_path, one=[["text", "label"], ["warm", "x"], ["dull", None]])
    with pytest.raises(DataError, match="line 3: expected a label; it is empty: fill it in"):
        read(path)


@pytest.mark.parametrize(("more", "also"), [(1, "that of 1 more row"), (2, "those of 2 more rows")])
def test_rows_without_a_label_are_counted(tmp_path, more: int, also: str):
    file = tmp_path / "t.csv"
    file.write_text("label,text\nx,warm\n,dull\ny,cold\n" + " ,bland\n" * more + "x,bright\n")
    with pytest.raises(
        DataError, match=f"line 3: expected a label; it is empty, as {also}: fill it in, delete it, or leave"
    ):
        read(file)


def test_a_column_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="expected a column 'text'; found review, stars"):
        read(book(tmp_path, one=[["review", "stars"], ["warm", 5]]))


def test_a_file_that_is_none_and_one_that_is_compressed(tmp_path):
    (tmp_path / "b.xlsx").write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(DataError, match=r"b.xlsx: expected an Excel workbook"):
        read(tmp_path / "b.xlsx")
    (tmp_path / "b.xlsx.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(DataError, match=r"not compressed: unpack it first"):
        read(tmp_path / "b.xlsx.gz")


def test_an_empty_workbook(tmp_path):
    with pytest.raises(DataError, match="expected one or more texts; found none"):
        read(book(tmp_path, one=[]))


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    path = book(tmp_path, one=[["text", "label"], ["warm", "x"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"needs openpyxl.*pip install 'wordward\[tables\]'"):
        read(path)


def test_a_sheet_that_breaks_off_after_its_first_rows(tmp_path):
    path = book(tmp_path, one=[["text", "label"], *[["warm", "x"]] * 2000])
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w") as cut:
        for name, content in parts.items():
            cut.writestr(name, content[:60_000] if "sheet1" in name else content)
    with pytest.raises(DataError, match=r"a.xlsx: expected an Excel workbook \(.xlsx\); got: "):
        read(path)
