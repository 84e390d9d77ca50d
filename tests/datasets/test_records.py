"""Records with named fields: those inside others, Parquet, and what is said where pyarrow is missing."""

import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from wordward.datasets import ColumnError, DataError, Example, read
from wordward.support.errors import MissingExtraError


def written(folder: Path, content: str) -> Path:
    (folder / "a.jsonl").write_text(content, encoding="utf-8")
    return folder / "a.jsonl"


def parquet(folder: Path, rows: list[dict]) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "a.parquet")
    return folder / "a.parquet"


class TestInside:
    def test_a_field_inside_another(self, tmp_path):
        path = written(
            tmp_path, '{"review": {"text": "warm", "stars": 5}}\n{"review": {"text": "dull", "stars": 1}}\n'
        )
        examples = read(path, text_column="review.text", label_column="review.stars")
        assert examples == [Example("warm", "5", line=1), Example("dull", "1", line=2)]

    def test_a_key_with_a_dot_and_a_place_in_a_list(self, tmp_path):
        path = written(tmp_path, '{"a.b": "warm", "a": {"b": "no"}, "tags": [{"name": "good"}, 2]}\n')
        assert read(path, text_column="a.b", label_column="tags.0.name") == [Example("warm", "good", line=1)]
        assert read(path, text_column="a.b", label_column="tags.1") == [Example("warm", "2", line=1)]

    @pytest.mark.parametrize("name", ["review.words", "review.text.more", "tags.7", "tags.x", "nothing.text"])
    def test_one_that_is_not_there(self, tmp_path, name: str):
        path = written(tmp_path, '{"review": {"text": "warm"}, "tags": [1]}\n')
        with pytest.raises(
            ColumnError, match=rf"line 1: expected a key '{name}'; found review, tags: .*as review\.text"
        ):
            read(path, text_column=name, labelled=False)

    def test_an_object_says_to_name_its_field(self, tmp_path):
        path = written(tmp_path, '{"review": {"body": "warm"}}\n')
        with pytest.raises(DataError, match=r"got an object: name one of its fields, `text_column='review.body'`"):
            read(path, text_column="review", labelled=False)


class TestParquet:
    def test_texts_and_labels(self, tmp_path):
        path = parquet(tmp_path, [{"id": 1, "text": "warm film ", "label": 1}, {"id": 2, "text": "dull", "label": 0}])
        assert read(path) == [Example("warm film", "1", line=1), Example("dull", "0", line=2)]
        assert read(path, labelled=False)[0].label is None

    def test_a_field_inside_another(self, tmp_path):
        path = parquet(tmp_path, [{"review": {"text": "warm", "stars": 5.5}, "label": "x"}])
        assert read(path, text_column="review.text", label_column="review.stars") == [Example("warm", "5.5", line=1)]

    def test_a_column_that_is_not_there(self, tmp_path):
        path = parquet(tmp_path, [{"review": "warm", "stars": 5}])
        with pytest.raises(
            ColumnError, match="expected a key 'text'; found review, stars: name it with `text_column`"
        ):
            read(path)

    def test_a_missing_text(self, tmp_path):
        path = parquet(tmp_path, [{"text": "warm", "label": 1}, {"text": None, "label": 0}])
        with pytest.raises(DataError, match="line 2: expected a string; got null"):
            read(path)
        assert read(path, skip_empty=True) == [Example("warm", "1", line=1)]

    def test_a_file_that_is_none(self, tmp_path):
        (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
        with pytest.raises(DataError, match=r"a\.parquet: expected a Parquet file; got"):
            read(tmp_path / "a.parquet")

    def test_a_text_that_is_not_utf8(self, tmp_path):
        path = parquet(tmp_path, [{"text": "warm and funny", "label": 1}])
        path.write_bytes(path.read_bytes().replace(b"funny", b"f\xffnny"))
        with pytest.raises(DataError, match=r"a\.parquet: expected a Parquet file; got: 'utf-8' codec"):
            read(path)

    def test_without_pyarrow_the_extra_is_named(self, tmp_path, monkeypatch):
        path = parquet(tmp_path, [{"text": "warm", "label": 1}])
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingExtraError, match=r"needs pyarrow.*pip install 'wordward\[tables\]'"):
            read(path)
