"""A `.txt` of tokens with their tags is recognised; plain text is not taken for one."""

from pathlib import Path

import pytest

from wordward.datasets import DataError, read
from wordward.datasets.conll import looks_like_conll

TAGGED = {
    "blanks": "-DOCSTART- -X- O O\n\nAnna NNP B-NP B-PER\nslept VBD B-VP O\n\nOslo NNP B-NP B-LOC\nwoke VBD B-VP O\n",
    "tabs": "the\tc\nfilms\tc\nis\ti\n\nthis\tc\nis\tc\ndull\tc\n",
}
PLAIN = {
    "lines": "a warm film\na dull film that went on\n",
    "paragraphs": "a warm film\n\na dull film that went on\nand on\n",
    "a blank line between each": "warm film\n\ndull film\n\nlong film\n\n",
    "two words a line": "".join(f"word{number} other{number}\n" + "\n" * (number % 4 == 0) for number in range(40)),
}


@pytest.mark.parametrize("content", TAGGED.values(), ids=TAGGED)
def test_a_text_file_that_is_tagged(tmp_path, content: str):
    (tmp_path / "train.txt").write_text(content)
    examples = read(tmp_path / "train.txt")
    (tmp_path / "train.conll").write_text(content)
    assert examples == read(tmp_path / "train.conll")
    assert len(examples) == 2


def test_entities_are_recognised_where_no_labels_are_read(tmp_path):
    (tmp_path / "test.txt").write_text(TAGGED["blanks"])
    assert [each.text for each in read(tmp_path / "test.txt", labelled=False)] == ["Anna slept", "Oslo woke"]
    # Other tags must come again and again: two words a line may be a text.
    (tmp_path / "test.txt").write_text(TAGGED["tabs"])
    assert len(read(tmp_path / "test.txt", labelled=False)) == 6
    (tmp_path / "test.txt").write_text(f"{TAGGED['tabs']}\n" * 3)
    assert len(read(tmp_path / "test.txt", labelled=False)) == 6


@pytest.mark.parametrize("content", PLAIN.values(), ids=PLAIN)
def test_plain_text_stays_text(tmp_path, content: str):
    (tmp_path / "a.txt").write_text(content)
    lines = [line for line in content.splitlines() if line]
    assert [each.text for each in read(tmp_path / "a.txt", labelled=False)] == lines


def test_a_file_that_cannot_be_read_is_not_tagged(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 O\n\nx O\ny O\n")
    assert not looks_like_conll(tmp_path / "a.txt")
    with pytest.raises(DataError, match="expected UTF-8"):
        read(tmp_path / "a.txt", labelled=False)


def test_what_is_said_where_labels_are_needed(tmp_path):
    (tmp_path / "a.txt").write_text("a warm film\na dull film that went on\n")
    with pytest.raises(
        DataError, match=r"plain text has none: .*`format='conll'` for a token and its tag on each line"
    ):
        read(tmp_path / "a.txt")


def test_tokens_in_a_file_of_tabs_are_recognised_by_what_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    file.write_text("Dear\tc\nSir\tc\n\nI\tc\nwrites\ti\n")
    assert [each.tags for each in read(file)] == [("c", "c"), ("c", "i")]
    assert [each.text for each in read(file, text_column="0", label_column="1", skip_empty=True)][:2] == [
        "Dear",
        "Sir",
    ]
    file.write_text("text\tlabel\nfine\tgood\n\ndull\tbad\n")  # rows, of which each has one word
    assert [each.label for each in read(file)] == ["good", "bad"]
