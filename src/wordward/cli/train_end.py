"""What `wordward train` says at its end: which epoch was kept and why, and what may help if nothing was learnt."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wordward.cli.texts import learnt_too, texts_in
from wordward.config.settings import TrainConfig

# Errors that a Transformer makes less, by whether it tags: 0.71 and 0.67 of them are left in docs/yours.md.
FEWER = {False: "quarter", True: "third"}
HIGH = 2e-4  # learning rate of a Transformer that is no longer advised to be larger


def outcome(result: dict[str, Any], metrics: list[dict[str, Any]]) -> str:
    """The best epoch and its dev score; where an earlier one has a better score, why that was not kept."""
    criterion, epoch = result["criterion"], result["best_epoch"]
    if not result["dev"]:  # its line of the metrics was deleted while the run went on
        return f"best epoch {epoch}"
    score, sign = result["dev"][criterion], -1 if criterion == "error" else 1
    said = f"best epoch {epoch}, dev {criterion} {score:.4f}"
    scored = [(sign * line["dev"][criterion], -line["epoch"]) for line in metrics if line.get("dev")]
    value, place = max(scored, default=(sign * score, -epoch))
    if value <= sign * score:
        return said
    return f"{said} ({sign * value:.4f} at epoch {-place} is not better beyond chance: the later epoch is kept)"


def test_score(folder: str, file: str, device: str, *, quiet: bool) -> str:
    """What a trained model scores on labelled texts that it has not seen, in a line; its result.json keeps it."""
    from wordward.datasets.streams import called
    from wordward.runs.metrics import intervals_to_json
    from wordward.runs.opening import load_run
    from wordward.runs.run_folder import save_test

    run = load_run(folder, device=device)
    source = called(file)
    examples = texts_in(run, file, quiet=quiet)
    evaluation = run.evaluate(examples, source=source, quiet=quiet)
    scores = intervals_to_json(evaluation.scores)
    save_test(
        Path(folder),
        {
            "file": file,
            "texts": evaluation.texts,
            "scores": scores,
            "majority_error": round(evaluation.majority_error, 6),
        },
    )
    criterion = run.config.training.criterion
    score = evaluation.scores[criterion]
    ends = "" if score.tells_nothing else f", 95 % interval {score.low:.4f} to {score.high:.4f}"
    shared = 0 if quiet else learnt_too(run.config, examples)
    also = f"; {shared:,} of them {'is' if shared == 1 else 'are'} also in {run.config.data.train}" if shared else ""
    texts = f"{evaluation.texts:,} {'sentences' if run.tagging else 'texts'} of {source}"
    return f"test {criterion} {score.value:.4f}{ends} ({texts}){also}"


def advice(result: dict[str, Any], config: TrainConfig, metrics: Sequence[dict[str, Any]] = ()) -> str:
    """What may help a run that has learnt nothing so far, or is not known to; empty where it has, in any epoch."""
    if not result["dev"]:
        return ""
    score, majority = result["dev"][result["criterion"]], result.get("majority_error")
    if result["criterion"] == "f0.5" and not score:
        return (
            "not one dev token was correctly given the positive tag: longer training (--patience, "
            "--epochs), a larger --learning-rate or more texts with that tag may help"
        )
    if result["criterion"] == "entity_f1" and not score:
        return (
            "not one entity of the dev texts was marked exactly: longer training (--patience, --epochs), a larger "
            f"--learning-rate, {_start(config)}or more texts may help"
        )
    if result["criterion"] != "error" or majority is None:  # a sweep shows its trials instead
        return ""
    best = min([score, *(line["dev"]["error"] for line in metrics if line.get("dev"))])
    return _of_error(score, best, majority, result["texts"]["dev"], config)


def transformer(asked: TrainConfig, trained: TrainConfig, folder: str, result: dict[str, Any]) -> str:
    """What the Transformer at hand would bring to a run that could have taken it, in a line; else empty."""
    from wordward.runs.input_table import CACHED
    from wordward.runs.run_folder import load_labels
    from wordward.train.choosing import TRANSFORMER_SECONDS, extra_is_missing, fine_tuning_settings, left_out

    if not left_out(asked, trained):
        return ""
    tagging = trained.model.kind == "spelling"
    how = fine_tuning_settings(result["texts"]["train"], len(load_labels(folder)), tagging=tagging)
    if how is None:
        return ""
    name = CACHED.split("/")[1]
    slow = f"takes more than {TRANSFORMER_SECONDS // 60} minutes here"
    extra = "needs pip install 'wordward[hf]'" if extra_is_missing() else slow
    return (
        f"{name}, which is at hand, makes about a {FEWER[tagging]} fewer errors than such a model "
        f"(docs/yours.md), but {extra}: --model {name} --epochs {how['epochs']} "
        f"--learning-rate {how['learning_rate']:g}"
    )


def _of_error(score: float, best: float, majority: float, texts: int, config: TrainConfig) -> str:
    """The advice for a dev error, and the best of any epoch, beside that of the most frequent label."""
    from wordward.runs.metrics import share

    others = "--dev FILE or a larger --dev-share, or more texts"
    if not majority and not config.data.corpus:
        return f"the dev texts all have the same label, so their error tells little: give others with {others}"
    if share(round(best * texts), texts).high < majority:
        return ""
    most_frequent = f"{majority:.4f}, that of always giving the most frequent label"
    if best <= majority / 2 or share(0, texts).high >= majority:
        more = "" if config.data.corpus else f": give more with {others}"
        few = f"{texts:,} dev {'text is' if texts == 1 else 'texts are'} too few"
        return f"{few} to tell a dev error of {score:.4f} from {most_frequent}{more}"
    longer = "--epochs, --patience" if config.training.minutes is None else "--minutes, --epochs, --patience"
    slow = config.transformer and config.training.learning_rate < HIGH
    faster = "a larger --learning-rate, " if slow else ""
    return (
        f"the dev error is not clearly below {most_frequent}: longer training ({longer}), "
        f"{faster}{_start(config)}or more texts may help"
    )


def _start(config: TrainConfig) -> str:
    """What else the model could start from; empty where it started from something learnt."""
    if config.transformer or config.pretrained or config.vectors:
        return ""
    ours = "--vectors" if config.model.kind in ("convolution", "spelling") else "--pretrained or --vectors"
    return f"a start from {ours}, "
