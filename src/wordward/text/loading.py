"""Load the texts that settings name: read them, draw a sample, hold some out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wordward.config.settings import TrainConfig
from wordward.config.texts import DataSettings
from wordward.datasets import ColumnError, DataError, Example, MissingError, hold_out, sample
from wordward.datasets.columns import Columns
from wordward.datasets.example import alike, check_labels, drop_shared, label_names, single_spaced
from wordward.datasets.files import read_each
from wordward.datasets.streams import is_incoming, kept
from wordward.support.console import say
from wordward.support.errors import RunError, SettingError
from wordward.text.on_disk import Texts, are_large

InMemory = Mapping[str, list[Example]]  # texts in memory by what they are for: train, dev, unlabelled
IN_MEMORY = "texts in memory"  # what a run's settings name in the place of a file


def labelled_examples(
    config: TrainConfig, in_memory: InMemory | None = None, *, quiet: bool = True
) -> tuple[list[Example], list[Example], tuple[str, ...]]:
    """The user's own texts to learn from, those held out to choose the best epoch, and the labels.

    `in_memory`: texts in memory, in the place of files; unless `quiet`, says how many were left out.
    """
    data, in_memory = config.data, in_memory or {}
    whole = in_memory.get("train") or read_as(replace(data, limit=None), data.train, quiet=quiet)
    classes = labels_to_learn(whole, data.train)  # a limit leaves out texts, but no label
    _warn_of_labels(whole, classes, quiet=quiet)
    labelled = sample(whole, data.limit, labels=label_names, in_order=False)
    if "dev" in in_memory:
        return labelled, sample(in_memory["dev"], data.limit, labels=label_names, in_order=False), classes
    if data.dev:
        return labelled, read_as(data, data.dev, quiet=quiet), classes
    seed = config.training.seed if data.split_seed is None else data.split_seed
    learnt, held_out = _apart(labelled, data.dev_share, seed)
    if left := len(labelled) - len(learnt) - len(held_out):
        many = "text that is also learnt is" if left == 1 else "texts that are also learnt are"
        say(f"{left:,} {many} left out of dev", quiet=quiet)
    return learnt, held_out, classes


def labels_to_learn(examples: Sequence[Example], source: object) -> tuple[str, ...]:
    """The labels or tags of texts to learn from; refuses texts from which none can be told from another."""
    if len(examples) == 1 and (tags := examples[0].tags) is not None:
        raise DataError(
            f"expected sentences with an empty line between two of them; found one, of {len(tags)} tokens", source
        )
    return check_labels(examples, source)


def _apart(labelled: list[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Some of the texts held out, none of them learnt, too, as far as that can be: a score on it would flatter.

    The few that are also among the learnt are left out; where that leaves less than half, or not all labels, groups
    of equal texts are drawn instead (not of tagged sentences, whose words are learnt one by one).
    """
    learnt, held_out = hold_out(labelled, share, seed=seed, labels=label_names)
    own = drop_shared(held_out, learnt)
    if 2 * len(own) >= len(held_out) and _names(own) == _names(held_out):
        return learnt, own
    if labelled[0].tags is not None:
        return learnt, held_out
    equal: dict[str, list[Example]] = {}
    for example in labelled:
        equal.setdefault(single_spaced(example.text), []).append(example)
    try:
        groups = hold_out(list(equal.values()), share, seed=seed, labels=_names)
    except DataError:  # of too few different texts
        return learnt, held_out
    learnt, held_out = ([example for group in side for example in group] for side in groups)
    return learnt, held_out


def _names(examples: Iterable[Example]) -> set[str | None]:
    """The labels or tags that occur."""
    return {name for example in examples for name in example.names}


def _warn_of_labels(examples: list[Example], classes: tuple[str, ...], *, quiet: bool) -> None:
    """Name labels that are probably meant to be one."""
    if quiet or not (groups := alike(classes)):
        return
    counts = Counter(name for example in examples for name in example.names)
    named = "; ".join(" and ".join(f"{name!r} ({counts[name]:,})" for name in group) for group in groups)
    say(
        f"labels that differ only in case, blanks or a final `.0` are learnt as different ones: {named}. Write "
        "each in one way if they are meant to be the same"
    )


def with_in_memory(data: DataSettings, in_memory: InMemory, resumed: Path | None = None) -> DataSettings:
    """The settings of a run whose texts are `in_memory`: where a file would be named, that they were in memory.

    A name in the settings that is no file is kept. `resumed`: the folder of a run to continue, whose texts must be
    given again if they were in memory.
    """
    if in_memory and data.corpus:
        raise SettingError("corpus", "a corpus has its own texts, but others were given, too: leave one out")
    for name in ("train", "dev", "unlabelled"):
        named = getattr(data, name)
        if name in in_memory and named and Path(at_hand(named)).exists():
            raise SettingError(name, f"`{name}` was given both in memory and as the file {named}: leave one out")
        if resumed is not None and named == IN_MEMORY and name not in in_memory:
            raise RunError(
                f"{resumed} was trained on texts in memory, which it does not keep: give them again as `{name}`"
            )
    return replace(data, **{name: getattr(data, name) or IN_MEMORY for name in in_memory})


def split_examples(data: DataSettings, name: str) -> list[Example]:
    """The texts of a split of a known corpus, up to the limit of the settings."""
    from wordward.datasets import registry
    from wordward.text.corpora import PACK

    if str(data.corpus).endswith(PACK):
        raise DataError(f"{data.corpus} holds word ids, not texts: give the corpus by name, or a file of texts")
    return sample(registry.load(str(data.corpus))._asdict()[name], data.limit, labels=label_names)


def unlabelled_examples(
    data: DataSettings, in_memory: InMemory | None = None, *, quiet: bool = True
) -> list[Example] | Texts:
    """The texts without labels, of which there may be none; those of large files are read one at a time."""
    if in_memory and "unlabelled" in in_memory:
        return sample(in_memory["unlabelled"], data.limit, labels=label_names, in_order=False)
    if not data.unlabelled:
        return []
    texts = unlabelled_texts(data)
    if are_large(texts.paths):
        return texts
    return read_as(data, str(data.unlabelled), labelled=False, quiet=quiet)


def unlabelled_texts(data: DataSettings) -> Texts:
    """The texts without labels, to be read one at a time."""
    path = Path(file_at_hand(str(data.unlabelled)))
    texts = Texts([path], text_column=data.text_column, format=_kind(data), skip_empty=data.skip_empty)
    try:
        next(iter(texts))  # fail now rather than after encoding the labelled texts
    except ColumnError as error:
        if not data.train:
            raise
        shared = "`text_column`" if data.format == "auto" else "`text_column` and `format`"
        raise ColumnError(
            f"{error}; `train`, {data.train}, is read with the same {shared}: use the same column name in both, "
            "or give the unlabelled texts as .txt, one per line"
        ) from None
    return texts


def read_as(
    data: DataSettings,
    path: str,
    *,
    labelled: bool = True,
    group_column: str | None = None,
    several_labels: bool = False,
    quiet: bool = True,
) -> list[Example]:
    """Read a file as a run's settings say; `group_column`: what its texts are counted by."""
    names = data.text_column, data.label_column, data.tag_column
    columns = Columns(*names, labelled, data.skip_empty, group_column, several_labels, data.pair_column)
    examples = list(read_each(Path(file_at_hand(path)), columns, _kind(data), quiet=quiet))
    return sample(examples, data.limit, labels=label_names, in_order=False)


def _kind(data: DataSettings) -> str | None:
    return None if data.format == "auto" else data.format


def file_at_hand(path: str) -> str:
    """A file that must exist, as named or in the data folder; standard input and pipes as files."""
    from wordward.datasets.registry import VARIABLE, folder

    if is_incoming(Path(path)):
        return str(kept(Path(path)))
    existing = at_hand(path)
    if not Path(existing).exists():
        searched = "" if Path(path).is_absolute() else f" here or in the data folder, {folder()} (see {VARIABLE})"
        raise MissingError(f"expected a file or folder; there is none of this name{searched}", path)
    return existing


def at_hand(path: str) -> str:
    """A file as named, or else the one of that name in the data folder."""
    from wordward.datasets.registry import folder

    in_data_folder = folder() / path
    return str(in_data_folder) if not Path(path).exists() and in_data_folder.exists() else path
