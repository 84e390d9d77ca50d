"""A report as one HTML page that needs nothing from elsewhere."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from wordward.explain.html import column_heads, page, safe
from wordward.explain.wording import title
from wordward.perturbation.recipes import parse_methods
from wordward.report.gathering import Report, ReportSettings, Subject, gather
from wordward.report.tables import (
    LABELS,
    NAMES,
    NUMBERS,
    between,
    confusion,
    curves,
    meaning,
    paired,
    percent,
    results,
    strips,
)
from wordward.report.words import adversarial, neighbours, sentences
from wordward.runs.run_folder import config_text, write
from wordward.support.version import __version__

STYLE = (files("wordward.report") / "style" / "report.css").read_text()


def write_report(
    out: str | Path,
    run: str | Path,
    settings: ReportSettings | None = None,
    *,
    against: Sequence[str | Path] = (),
    device: str = "auto",
    quiet: bool = False,
) -> Path:
    """Gather a report on a run and write its page, whole or not at all."""
    path = Path(out)
    write(path, draw(gather(run, settings, against=against, device=device, quiet=quiet)))
    return path


def draw(report: Report) -> str:
    """The page."""
    first = report.subjects[0]
    sections = {
        "results": ("How well it does", _results(report)),
        "learning": ("How it learnt", _learning(report)),
        "labels": (f"Which {'tags' if first.run.tagging else 'labels'} it mixes up", _confusion(report)),
        "sentences": ("What changes its mind", sentences(report)),
        "attack": ("Adversarial texts", adversarial(report)),
        "words": (f"Nearest words{'' if report.words_note else ', before and after'}", neighbours(report)),
        "made": ("How it was made", _made(report)),
    }
    present = {name: part for name, part in sections.items() if part[1]}
    links = "\n".join(f'<a href="#{name}">{heading}</a>' for name, (heading, _) in present.items())
    notes = "".join(f"<li>{safe(note)}</li>" for subject in report.subjects for note in subject.notes)
    body = [
        f'<p class="rp-lead">{_lead(first)}</p>',
        f'<ul class="rp-warn">{notes}</ul>' if notes else "",
        f'<nav aria-label="Sections">\n{links}\n</nav>',
    ]
    body += [
        f'<section id="{name}">\n<h2>{heading}</h2>\n{inside}\n</section>'
        for name, (heading, inside) in present.items()
    ]
    return page(f"Report on {first.name}", "\n".join(body), style=STYLE)


def _lead(subject: Subject) -> str:
    """What the model is, for a reader who knows nothing of it."""
    run, texts = subject.run, (subject.result.get("texts") or {}).get("train")
    names = ", ".join(safe(label) for label in run.labels[:8]) + (" …" if len(run.labels) > 8 else ".")
    unit, kind = ("sentence", "tags") if run.tagging else ("text", "labels")
    gives = "gives each of its words" if run.tagging else "gives it"
    what = f"reads a {unit} and {gives} one of {len(run.labels)} {kind}: {names}"
    if run.positive is not None:
        what += f" Its job is to find the words that are “{safe(run.labels[run.positive])}”."
    many = f"{texts:,} {unit}s" if texts else f"labelled {unit}s"
    return f"The model <b>{safe(subject.name)}</b> {what} It learnt from {many} {_how(run.config.method)}"


def _how(method: str) -> str:
    """A method in a sentence."""
    methods = parse_methods(method)
    if not methods:
        return "as they are, without perturbations (the baseline)."
    named = " and ".join(title(one.name) for one in methods)
    words = any(one.recipe.space == "words" for one in methods)
    where = "toward other words" if words else "away from where they were"
    guided = any(one.recipe.follows_gradient for one in methods)
    how = "in the way that hurts it most" if guided else "in a way drawn at random"
    return (
        f"with {safe(named)}: at every step its word vectors were pushed {where}, {how}, and it had to be right all "
        "the same."
    )


def _results(report: Report) -> str:
    """The number that counts, large; then all of them."""
    first = report.subjects[0]
    if first.scored is None:
        return '<p class="rp-say">There are no texts at hand to score the model on: give a test file.</p>'
    metric = first.run.config.training.criterion
    value, unit = first.scored.measured[metric], "sentences" if first.run.tagging else "texts"
    spread = "No interval" if value.tells_nothing else f"95\u00a0% interval {between(value)}"
    head = (
        f'<div class="rp-head"><p class="rp-big">{percent(value.value)}</p><p><b>{NAMES[metric]}</b> on '
        f"{first.scored.texts:,} {report.shown_from} {unit}: {safe(meaning(metric, report))}.<br>"
        f"{spread}.</p></div>"
    )
    why = (
        "The interval says how far off a number may be because only so many texts were counted. Dev texts chose the "
        "epoch whose model was kept, so their numbers flatter it a little."
    )
    shown = [
        scored for subject in report.subjects for scored in (subject.dev, subject.test) if scored is not None
    ]
    if any(interval.tells_nothing for scored in shown for interval in scored.measured.values()):
        why += " Where there is no interval, texts drawn from these all give the same number; others may not."
    return "\n".join(
        [
            head,
            f'<p class="rp-say">{why}</p>',
            strips(report, metric),
            paired(report),
            results(report, "test"),
            results(report, "dev"),
        ]
    )


def _learning(report: Report) -> str:
    several = sum(bool(subject.metrics) for subject in report.subjects) > 1
    apart = " Methods add terms of their own to the loss: compare shapes, not heights." if several else ""
    return (
        '<p class="rp-say">An epoch is one reading of all training texts. The loss should fall; the dev score tells '
        "whether what was learnt holds for other texts too. The ring marks the epoch whose model was kept."
        f"{apart}</p>\n{curves(report)}"
    )


def _confusion(report: Report) -> str:
    first = report.subjects[0]
    if first.scored is None:
        return ""
    unit = "words" if first.run.tagging else "texts"
    say = "The most frequent mix-ups; the share is that of all that truly are of the kind."
    if len(first.run.labels) <= LABELS:
        say = (
            f"A row holds the {unit} that truly are of a kind, a column what the model says of them; the share is "
            "that of the row. Blue is right, orange is wrong."
        )
    counted = f"Counted on {report.shown_from} texts."
    return f'<p class="rp-say">{say} {counted}</p>\n{confusion(first.scored, first.run.labels, unit)}'


def _made(report: Report) -> str:
    """Versions, seed, device, seconds, and all settings."""
    facts: dict[str, list[str]] = {}
    for subject in report.subjects:
        result, config = subject.result, subject.run.config
        versions = ", ".join(f"{name} {version}" for name, version in result.get("versions", {}).items())
        texts = ", ".join(f"{count:,} {name}" for name, count in (result.get("texts") or {}).items())
        of_run = {
            "method": title(config.method),
            "texts": texts,
            "seed": str(config.training.seed),
            "epochs": str(result.get("epochs", "")),
            "best epoch": str(result.get("best_epoch", "")),
            "steps": f"{result['steps']:,}" if "steps" in result else "",
            "seconds": f"{result['seconds']:,.0f}" if "seconds" in result else "",
            "device": str(result.get("device", "")),
            "versions": versions,
        }
        for name, value in of_run.items():
            facts.setdefault(name, []).append(value or "–")
    head = column_heads(subject.name for subject in report.subjects)
    rows = "".join(f'<tr><th scope="row">{name}</th>{_cells(values)}</tr>' for name, values in facts.items())
    settings = "\n".join(
        f"<details><summary>All settings of {safe(subject.name)} (TOML)</summary>"
        f"<pre>{safe(config_text(subject.run.folder))}</pre></details>"
        for subject in report.subjects
    )
    return (
        '<p class="rp-say">What it takes to make these runs again: <code>wordward train</code> takes the '
        f"settings below. This page was made by wordward {safe(__version__)} with seed "
        f"{report.settings.seed}.</p>\n{NUMBERS}\n<thead><tr><td></td>{head}</tr></thead>\n<tbody>{rows}</tbody>\n"
        f"</table></div>\n{settings}"
    )


def _cells(values: Sequence[str]) -> str:
    """A cell a run, or one across where all have the same."""
    if len(set(values)) == 1:
        return f'<td colspan="{len(values)}">{safe(values[0])}</td>'
    return "".join(f"<td>{safe(value)}</td>" for value in values)
