"""Language-model pre-training: the LSTM reads running text; the model that is best on held-out text is kept."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wordward.config.settings import PretrainConfig, filled, given_of
from wordward.datasets import Example, examples_of, hold_out, sample
from wordward.datasets.columns import Columns
from wordward.datasets.files import read_each
from wordward.models import LanguageModel
from wordward.runs import checkpoint, claiming, run_folder
from wordward.support.console import waiting
from wordward.support.distributed import team
from wordward.support.errors import RunError, SettingError
from wordward.support.threads import threads_for
from wordward.text.corpora import open_corpus
from wordward.text.corpus import Corpus, encode
from wordward.text.loading import IN_MEMORY, file_at_hand
from wordward.text.on_disk import Texts, are_large, store
from wordward.text.ragged import Chosen
from wordward.text.scripts import fitting
from wordward.text.tokens import vocabulary_of
from wordward.text.vocabulary import Vocabulary
from wordward.train.pretrainer import Pretrainer
from wordward.train.record import check_epochs
from wordward.train.tracking import check_tracker


def pretrain(
    config: PretrainConfig,
    out: str | Path,
    *,
    texts: Iterable[Example | str] | None = None,
    force: bool = False,
    resume: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train a language model into a run folder, for `TrainConfig(pretrained=out)` to start from.

    If a launcher such as torchrun started several processes, all call this and train it together. Ctrl-C ends
    training early, and leaves the best model so far.

    Args:
        config: All settings; it names files or a corpus, unless texts are given here.
        out: The run folder to write.
        texts: Texts to read, strings or `Example`s, in the place of files.
        force: Replace a run that `out` already holds.
        resume: Continue the run in `out` with its own settings; of `config` only `epochs`, `minutes` and `device`
            count. Texts that were given in memory must be given again.
        quiet: Show nothing.

    Returns:
        The result, as written to result.json: the held-out `perplexity`, the `best_epoch`, `epochs`, `words` read,
        whether training was `stopped`, and so on.

    Raises:
        WordwardError: If texts, settings or the folder cannot be used, or the loss is not finite.

    Examples:
        >>> import wordward, tempfile
        >>> from wordward.config import ModelSettings, PretrainConfig
        >>> texts = [f"the {a} film was {b}" for a in ("new", "old", "long") for b in ("warm", "dull", "cold")]
        >>> sizes = ModelSettings(dim=8, hidden=8)
        >>> config = PretrainConfig(epochs=1, streams=2, window=5, held_out_share=0.2, model=sizes, device="cpu")
        >>> folder = tempfile.mkdtemp()
        >>> wordward.train.pretrain(config, f"{folder}/lm", texts=texts, quiet=True)["epochs"]
        1
    """
    folder, in_memory = Path(out), None
    if texts is not None:
        in_memory = examples_of(texts, "texts", labelled=False, skip_empty=config.skip_empty)
    if resume:
        config = _to_resume(folder, config, in_memory=in_memory is not None)
    check_tracker(config.report_to)
    if in_memory is not None:
        if config.corpus or config.texts not in ((), (IN_MEMORY,)):
            raise SettingError("texts", "texts were given in memory, but the settings name others: leave one out")
        config = replace(config, texts=(IN_MEMORY,))
    if not (config.texts or config.corpus):
        raise SettingError("texts", "there are no texts to read: give `texts`, or a `corpus`")
    config = filled(config)
    processes = team(config.device)
    if processes.first and not resume:
        claiming.check_free(folder, force=force, inputs=config.texts)
    own = in_memory or Texts(
        [Path(file_at_hand(path)) for path in config.texts], config.text_column, _kind(config), True
    )
    if not config.corpus and not resume:
        config = replace(config, text=fitting(config.text, (each.text for each in own), quiet=quiet))
    with processes.one_a_machine_first():
        vocabulary, rows, held_out = _texts(config, in_memory, quiet=quiet)
    if resume and run_folder.begun(folder):
        run_folder.check_vocabulary(folder, vocabulary)
        checkpoint.check_resumable(folder, partial(LanguageModel, len(vocabulary), config.model))
    trainer = Pretrainer(config, vocabulary, rows, held_out, folder, quiet=quiet, team=processes)
    with claiming.held(folder, first=processes.first):
        _begin(trainer, folder, force=force, resume=resume)
        with processes.interruptible(), threads_for(config.model.hidden):
            stopped = trainer.record.interrupted(trainer.fit, trainer.save_model)
        result = trainer.result(stopped)
        return run_folder.save_result(folder, result, trainer.device) if processes.first else result


def _to_resume(folder: Path, asked: PretrainConfig, *, in_memory: bool) -> PretrainConfig:
    """The run's own settings; only how long and where to train may be changed."""
    kept = run_folder.load_config(folder, PretrainConfig)
    claiming.check_writable(folder)
    if not in_memory and kept.texts == (IN_MEMORY,):
        raise RunError(f"{folder} was trained on texts in memory, which it does not keep: give them again as `texts`")
    config = replace(kept, **given_of(asked, "epochs", "minutes", "device"))
    check_epochs(folder, config.epochs)
    return config


def _begin(trainer: Pretrainer, folder: Path, *, force: bool, resume: bool) -> None:
    """Load the run to resume, or create the folder of a new one."""
    if resume and run_folder.begun(folder):
        trainer.load()
    elif trainer.team.first:
        if not resume:
            claiming.create(folder, force=force)
        run_folder.save_settings(folder, trainer.config, trainer.vocabulary)


def _texts(
    config: PretrainConfig, in_memory: list[Example] | None = None, *, quiet: bool
) -> tuple[Vocabulary, Sequence[np.ndarray], Sequence[np.ndarray]]:
    """The vocabulary, the texts to read, and those held out to choose the best epoch."""
    if in_memory is not None:
        return _encoded(in_memory, config)
    kind = _kind(config)
    paths = [Path(file_at_hand(path)) for path in config.texts]
    if config.corpus:
        own = Texts(paths, config.text_column, kind, config.skip_empty) if paths else None
        encoded = open_corpus(config.corpus, config.text, limit=config.limit, texts=own, quiet=quiet)
        rows = (encoded.splits["train"] + encoded.splits["unlabelled"]).rows
        return encoded.vocabulary, *_hold_out(rows, config)
    if are_large(paths):
        texts = Texts(paths, config.text_column, kind, config.skip_empty)
        with waiting("counting the words", quiet=quiet):
            vocabulary = vocabulary_of(texts, config.text)
        stored = Corpus(store(texts, vocabulary, config.text, quiet=quiet))
        return vocabulary, *_hold_out(stored.sample(config.limit).rows, config)
    with waiting("reading the texts", quiet=quiet):
        columns = Columns(config.text_column, labelled=False, skip_empty=config.skip_empty)
        examples = [example for path in paths for example in read_each(path, columns, kind, quiet=quiet)]
        return _encoded(examples, config)


def _kind(config: PretrainConfig) -> str | None:
    return None if config.format == "auto" else config.format


def _encoded(
    examples: list[Example], config: PretrainConfig
) -> tuple[Vocabulary, Sequence[np.ndarray], Sequence[np.ndarray]]:
    """The vocabulary, the texts to read, and those held out, of texts in memory."""
    places = {id(example): at for at, example in enumerate(examples)}
    examples = sample(examples, config.limit, seed=config.seed, in_order=False)
    kept, held_out = hold_out(examples, config.held_out_share, seed=config.seed)
    if not config.shuffle:
        kept.sort(key=lambda example: places[id(example)])
    vocabulary = vocabulary_of(kept, config.text)
    rows, held = (encode(part, vocabulary, config.text).rows for part in (kept, held_out))
    return vocabulary, rows, held


def _hold_out(rows: Sequence[np.ndarray], config: PretrainConfig) -> tuple[Chosen, Chosen]:
    """The rows to read, in their own order unless it is drawn anew, and those held out."""
    order = np.random.default_rng(config.seed).permutation(len(rows))
    cut = max(1, round(config.held_out_share * len(rows)))
    kept = order[cut:] if config.shuffle else np.sort(order[cut:])
    return Chosen(rows, kept), Chosen(rows, order[:cut])
