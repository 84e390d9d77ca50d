"""A report as one HTML page that needs nothing from elsewhere."""

from base64 import b64encode
from collections.abc import Sequence
from json import dumps
from pathlib import Path

from wordward.attack.wording import stretches, told
from wordward.explain.faithfulness import CHOICES
from wordward.explain.html import html_fragment, render
from wordward.explain.wording import title
from wordward.perturbation.recipes import parse_methods
from wordward.report.charts import kind, strip
from wordward.report.contents import SWAPS, Report, ReportSettings
from wordward.report.gathering import gather
from wordward.report.record import record
from wordward.report.tables import NAMES, best_epoch, between, count, meaning, numbers, points, rate
from wordward.runs.run_folder import config_text
from wordward.support.files import write
from wordward.support.version import __version__


def write_report(
    out: str | Path,
    run: str | Path,
    settings: ReportSettings | None = None,
    *,
    against: Sequence[str | Path] = (),
    device: str = "auto",
    quiet: bool = False,
    json: str | Path | None = None,
    picture: str | None = None,
) -> Path:
    """Gather a report on a run and write its page, whole or not at all.

    Args:
        out: The page to write.
        run: The run's folder.
        settings: What goes into it.
        against: Folders of other runs with the same labels, to compare with.
        device: cpu, cuda or mps; auto takes the fastest available.
        quiet: Show no progress.
        json: A file for its numbers, those of `record`.
        picture: SVG that the page opens with.

    Returns:
        The path of the page.

    Examples:
        >>> from wordward.report import ReportSettings, write_report
        >>> settings = ReportSettings(attack=0, sentences=0)
        >>> write_report("report.html", "runs/mine", settings, quiet=True).name
        'report.html'
    """
    path = Path(out)
    report = gather(run, settings, against=against, device=device, quiet=quiet)
    write(path, draw(report, picture))
    if json is not None:
        write(Path(json), dumps(record(report), ensure_ascii=False, indent=1) + "\n")
    return path


def draw(report: Report, picture: str | None = None) -> str:
    """The page of a report; what its templates show is named here.

    Args:
        report: What `gather` found.
        picture: SVG that the page opens with.

    Returns:
        HTML that needs nothing from elsewhere.

    Examples:
        >>> from wordward.report import ReportSettings, draw, gather
        >>> draw(gather("runs/mine", ReportSettings(attack=0, sentences=0), quiet=True))[:15]
        '<!doctype html>'
    """
    from markupsafe import Markup

    first, run = report.subjects[0], report.subjects[0].run
    functions = (between, best_epoch, config_text, count, kind, meaning, points, rate, stretches, strip, told)
    return render(
        "report/templates/report.html.j2",
        title=f"Report on {first.name}",
        report=report,
        first=first,
        tagging=run.tagging,
        labels=run.labels,
        learnt_from=(first.result.get("texts") or {}).get("train"),
        how=_how(run.config.method) if run.trained_here else None,
        notes=[note for subject in report.subjects for note in subject.notes],
        sections=_sections(report),
        facts=_facts(report),
        groups=report.by_sense,
        summaries=first.summaries,
        METRICS=NAMES,
        CHOICES=CHOICES,
        SWAPS=SWAPS,
        version=__version__,
        picture=picture and b64encode(picture.encode()).decode(),
        fragment=lambda explanations: Markup(html_fragment(explanations)),
        **numbers(report),
        **{function.__name__: function for function in functions},
    )


def _sections(report: Report) -> dict[str, str]:
    """The headings of the sections that there is something to show in, by the names of their templates."""
    first = report.subjects[0]
    sections = {
        "results": ("How well it does", True),
        "learning": ("How it learnt", any(subject.run.trained_here for subject in report.subjects)),
        "labels": (f"Which {'tags' if first.run.tagging else 'labels'} it mixes up", first.scored),
        "sentences": ("What changes its mind", report.tellings),
        "faithful": ("Whether pulls name words that matter", any(each.faithfulness for each in report.subjects)),
        "attack": ("Adversarial texts", first.attacks),
        "words": (f"Nearest words{'' if report.words_note else ', before and after'}", report.words),
        "made": ("How it was made", True),
    }
    return {name: heading for name, (heading, shown) in sections.items() if shown}


def _how(method: str) -> str:
    """A method in a sentence."""
    methods = parse_methods(method)
    if not methods:
        return "as they are, without perturbations (the baseline)."
    named = " and ".join(title(one.name) for one in methods)
    toward_words = any(one.recipe.space == "words" for one in methods)
    where = "toward other words" if toward_words else "away from where they were"
    guided = any(one.recipe.follows_gradient for one in methods)
    how = "in the way that hurts it most" if guided else "in a way drawn at random"
    pushed = f"at every step its word vectors were pushed {where}, {how}"
    return f"with {named}: {pushed}, and it had to be right all the same."


def _facts(report: Report) -> dict[str, list[str]]:
    """What a run needs to be made again: a value for each run by the name of the fact."""
    facts: dict[str, list[str]] = {}
    for subject in report.subjects:
        result, config = subject.result, subject.run.config
        texts = result.get("texts") or {}
        of_run = {
            "method": title(config.method),
            "texts": ", ".join(f"{count(number)} {name}" for name, number in texts.items()),
            "seed": str(config.training.seed),
            "epochs": str(result.get("epochs", "")),
            "best epoch": str(result.get("best_epoch", "")),
            "steps": count(result["steps"]) if "steps" in result else "",
            "seconds": count(result["seconds"]) if "seconds" in result else "",
            "device": str(result.get("device", "")),
            "versions": ", ".join(f"{name} {version}" for name, version in result.get("versions", {}).items()),
        }
        for name, value in of_run.items():
            facts.setdefault(name, []).append(value or "–")
    return facts
