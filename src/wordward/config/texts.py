"""Where texts come from, and how they become word ids."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from wordward.config.fields import File, FileFormat, Name
from wordward.support import rules
from wordward.support.errors import SettingError
from wordward.support.given_settings import TracksGiven


@dataclass(frozen=True)
class DataSettings(TracksGiven):
    """Where texts come from: CSV, TSV, JSON Lines, CoNLL, plain text, Parquet, Excel or folders, also .gz and .xz.

    Examples:
        >>> from wordward.config import DataSettings
        >>> DataSettings("train.csv", test="test.csv").dev_share
        0.1
    """

    train: Annotated[str, tyro.conf.arg(metavar="FILE")] = ""
    """Labelled texts to learn from; here and wherever a file of texts is read, - is standard input, hub:NAME@SPLIT or
    hub:NAME:CONFIG@SPLIT a data set of the Hugging Face hub."""
    corpus: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Instead of files: a corpus of `wordward data list`, or a file that `wordward data pack` wrote."""
    dev: File = None
    """Labelled texts that choose the best epoch; by default a share of the training texts."""
    test: File = None
    """Labelled texts that `wordward train` scores the model on at the end; nothing is learnt or chosen on them."""
    unlabelled: File = None
    """Texts without labels, for the methods that `wordward methods` marks with unlab., such as vat and ivat; a
    corpus's own are used as well. In a table the text column is read, as in the labelled texts."""
    limit: int | None = None
    """Use at most this many texts of each kind, to try things out; every label is kept where they suffice."""
    text_column: str = "text"
    """Name of the column that holds the text (or its number, from 0, in a file without a header); review.text is
    the field text inside the field review of JSON or Parquet."""
    label_column: str = "label"
    """Name of the column that holds the label (or its number, if the text column is given by number too)."""
    pair_column: Name = None
    """Name (or number) of the column that holds a second text, where two are judged together by a Hugging Face
    model, such as premise and hypothesis; single texts are then written as first ||| second."""
    tag_column: int = -1
    """Column of the tag in a CoNLL file, from 0; -1 is the last."""
    format: FileFormat = "auto"
    """File format; by default recognised by the file name."""
    skip_empty: bool = False
    """Leave out texts that are empty or lack their label, which are refused otherwise."""
    dev_share: float = 0.1
    """Share of the training texts held out where no dev file is given."""
    split_seed: int | None = None
    """Seed for drawing that share, to hold out the same texts whatever the training seed; by default that seed."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check_choices(self)
        rules.check(self, rules.COUNT_OR_NONE, "limit")
        rules.check(self, rules.SHARE, "dev_share")
        rules.check(self, rules.SEED_OR_NONE, "split_seed")
        files = "train", "dev", "test", "unlabelled"
        if len(incoming := [name for name in files if getattr(self, name) == "-"]) > 1:
            raise SettingError(
                incoming[1],
                f"standard input holds one file, but `{'` and `'.join(incoming)}` are both -: name a file",
            )
        if self.corpus and self.pair_column:
            raise SettingError("pair_column", "`pair_column` names a column of a file, but `corpus` has single texts")
        if beside := [name for name in ("train", "dev") if self.corpus and getattr(self, name)]:
            raise SettingError(
                "corpus",
                f"a corpus has its own labelled texts, but `{'`, `'.join(beside)}` came with `corpus`: "
                "leave that out",
            )


@dataclass(frozen=True)
class TextSettings(TracksGiven):
    """How texts become word ids.

    Examples:
        >>> from wordward.config import TextSettings
        >>> TextSettings(lowercase=True).tokenizer
        'words'
    """

    tokenizer: Literal["words", "authors", "punctuation", "whitespace", "characters"] = "words"
    """words: runs of letters and digits; authors: the same with <br /> kept as "br"; punctuation: marks are
    tokens too; whitespace: for text that is already tokenised; characters: words, but each character of Chinese,
    Japanese, Thai and other scripts without spaces, which words becomes where training texts are written so."""
    lowercase: bool = False
    """Convert texts to lower case."""
    min_documents: int = 2
    """Number of texts a word must occur in to enter the vocabulary."""
    max_vocabulary: int | None = None
    """Keep only this many words, the most frequent; all by default."""
    max_length: int | None = None
    """Read only this many words of a text, or word pieces for a Hugging Face model; by default all it can read."""
    unknown: Literal["unk", "drop"] = "unk"
    """Unknown words become <unk>, or a form that they share with known words where the model chosen has such, or are
    left out as in the authors' code (never for tagging)."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        rules.check_choices(self)
        rules.check(self, rules.COUNT, "min_documents")
        rules.check(self, rules.COUNT_OR_NONE, "max_vocabulary", "max_length")
