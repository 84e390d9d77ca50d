"""The parts of a report's page that show numbers: results, learning curves, confusion, accuracy under attack."""

from collections.abc import Iterable, Sequence

import numpy as np

from wordward.explain.html import column_heads, safe, shade
from wordward.report.charts import Line, kind, lines, strip, ticks
from wordward.report.gathering import SWAPS, Report, Scored, Subject
from wordward.runs.metrics import Interval, mcnemar

NAMES = {
    "error": "Error",
    "macro_f1": "Macro-F1",
    "precision": "Precision",
    "recall": "Recall",
    "f0.5": "F0.5",
}
LABELS, PAIRS = 10, 12  # labels that a square of all has room for; mix-ups to list where there are more
NUMBERS = '<div class="rp-wide"><table class="rp-numbers">'


def percent(share: float, digits: int = 2) -> str:
    """A share with as many digits as `wordward evaluate` prints."""
    return f"{100 * share:.{digits}f}\u00a0%"


def between(interval: Interval, digits: int = 2) -> str:
    """The ends of an interval, where it tells anything."""
    if interval.tells_nothing:
        return "no interval"
    return f"{100 * interval.low:.{digits}f} to {percent(interval.high, digits)}"


def meaning(metric: str, report: Report) -> str:
    """What a number counts, in a line."""
    run = report.subjects[0].run
    tag = "" if run.positive is None else f"“{run.labels[run.positive]}”"
    what, kinds = (
        ("words that get the wrong tag", "tags")
        if run.tagging
        else ("texts that get the wrong label", "labels")
    )
    return {
        "error": f"share of {what}; 0\u00a0% is best",
        "macro_f1": f"precision and recall in one number, mean of all {kinds}; 100\u00a0% is best",
        "precision": f"of the words tagged {tag}, the share that are",
        "recall": f"of the words that are {tag}, the share tagged so",
        "f0.5": "precision and recall in one number, precision weighing more; 100\u00a0% is best",
    }[metric]


def results(report: Report, split: str) -> str:
    """All measures on dev or test texts, a column a run."""
    subjects = [(s, scored) for s in report.subjects if (scored := getattr(s, split)) is not None]
    if not subjects:
        return ""
    first = subjects[0][1]
    unit = "sentences" if report.subjects[0].run.tagging else "texts"
    where = "" if split == "dev" else f" of {first.source}"
    own = "" if split == "test" or report.same_dev else ", of each run its own"
    head = column_heads(subject.name for subject, _ in subjects)
    rows = []
    for metric in first.measured:
        cells = "".join(f"<td>{_measured(scored.measured.get(metric))}</td>" for _, scored in subjects)
        name = f"{NAMES[metric]}<small>{safe(meaning(metric, report))}</small>"
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    return (
        f'<h3>{split.capitalize()} {unit}</h3>\n<p class="rp-note">{first.texts:,} {unit}{safe(where)}{own}</p>\n'
        f'{NUMBERS}\n<thead><tr><th scope="col">measure</th>{head}</tr></thead>\n'
        f"<tbody>{''.join(rows)}</tbody>\n</table></div>"
    )


def _measured(interval: Interval | None, digits: int = 2) -> str:
    if interval is None:
        return "–"
    return f"<b>{percent(interval.value, digits)}</b><small>{between(interval, digits)}</small>"


def strips(report: Report, metric: str) -> str:
    """The measure that counts, of all runs, on one scale."""
    measured = [
        (number, subject.name, subject.scored.measured[metric])
        for number, subject in enumerate(report.subjects)
        if subject.scored is not None and metric in subject.scored.measured  # F0.5 needs a tag to flag
    ]
    if len(measured) < 2:
        return ""
    ends = [value for *_, interval in measured for value in interval]
    marks = ticks(min(ends), max(ends))
    rows = [
        f'<div class="rp-row"><span class="rp-name">{safe(name)}</span>'
        f"{strip(interval, number, low=marks[0], high=marks[-1])}"
        f'<span class="rp-value">{percent(interval.value)}</span></div>'
        for number, name, interval in measured
    ]
    scale = f"<span>{percent(marks[0], 0)}</span><span>{percent(marks[-1], 0)}</span>"
    return (
        f'<figure class="rp-strips"><figcaption>{NAMES[metric]} on {report.shown_from} texts: the dot is the value, '
        f'the line its 95\u00a0% interval.</figcaption>{"".join(rows)}<div class="rp-row rp-scale"><span></span>'
        f"<span>{scale}</span><span></span></div></figure>"
    )


def paired(report: Report) -> str:
    """Whether two runs really differ: the texts that only one of them gets wrong."""
    first, *others = report.subjects
    if first.run.tagging or (report.shown_from == "dev" and not report.same_dev):
        return ""
    items = []
    for other in others:
        if first.scored is None or other.scored is None:
            continue
        ours, theirs = first.scored.wrong, other.scored.wrong
        only = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
        both = f"<b>{safe(first.name)}</b> against <b>{safe(other.name)}</b>"
        if not any(only):
            same = "get the very same texts wrong" if ours.any() else "get every text right"
            items.append(f"<li>{both}: they {same}.</li>")
            continue
        p = mcnemar(*only)
        verdict = "may well be chance" if p >= 0.05 else "is unlikely to be chance alone"
        items.append(
            f"<li>{both}: {only[0]:,} {'text' if only[0] == 1 else 'texts'} only "
            f"{safe(first.name)} gets wrong, {only[1]:,} only {safe(other.name)}. Such a difference {verdict} "
            f"(McNemar’s test, p {f'= {p:.2f}' if p >= 0.01 else '&lt; 0.01'}).</li>"
        )
    return f'<ul class="rp-list">{"".join(items)}</ul>' if items else ""


def key(names: Iterable[str]) -> str:
    """Which line is whose."""
    keys = (f'<span class="{kind(number)}">{safe(name)}</span>' for number, name in enumerate(names))
    return f'<p class="rp-key">{"".join(keys)}</p>'


def curves(report: Report) -> str:
    """Loss and dev score by epoch, and the numbers to unfold."""
    learnt = [subject for subject in report.subjects if subject.metrics]
    if not learnt:
        return '<p class="rp-note">There are no curves to draw: no run kept its metrics.</p>'
    metric = learnt[0].run.config.training.criterion
    loss = [Line(s.name, [(m["epoch"], m["loss"]) for m in s.metrics]) for s in learnt]
    dev = [
        Line(s.name, [(m["epoch"], m["dev"][metric]) for m in s.metrics if metric in m["dev"]], best_epoch(s))
        for s in learnt
    ]
    charts = {
        "Loss on the training texts, by epoch": lines(
            "Loss on the training texts by epoch", loss, form=lambda y: f"{y:g}"
        ),
        f"{NAMES[metric]} on the dev texts, by epoch": lines(
            f"{NAMES[metric]} on the dev texts by epoch", dev, form=lambda y: f"{100 * y:.3g} %"
        ),
    }
    drawn = "".join(
        f"<figure><figcaption>{title}</figcaption>{svg}</figure>" for title, svg in charts.items()
    )
    legend = key(s.name for s in learnt) if len(learnt) > 1 else ""
    return f'{legend}<div class="rp-charts">{drawn}</div>{"".join(_epochs(s, metric) for s in learnt)}'


def best_epoch(subject: Subject) -> int | None:
    """The epoch whose model was kept."""
    return max((m["epoch"] for m in subject.metrics if m.get("best")), default=None)


def _epochs(subject: Subject, metric: str) -> str:
    best = best_epoch(subject)
    rows = "".join(
        f"<tr><td>{m['epoch']}{' (kept)' * (m['epoch'] == best)}</td><td>{m['loss']:.4f}</td>"
        f"<td>{percent(m['dev'][metric])}</td><td>{m['seconds']:,.0f}</td></tr>"
        for m in subject.metrics
        if metric in m["dev"]
    )
    head = column_heads(("epoch", "loss", f"dev {NAMES[metric]}", "seconds"))
    return (
        f"<details><summary>The numbers of {safe(subject.name)}</summary>{NUMBERS}"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def confusion(scored: Scored, labels: Sequence[str], unit: str) -> str:
    """Which label is taken for which."""
    counts = scored.confusion
    totals = np.maximum(counts.sum(1, keepdims=True), 1)
    if len(labels) > LABELS:
        return _mixups(counts, counts / totals, labels, unit)
    head = "".join(f'<th scope="col"><small>said</small> {safe(label)}</th>' for label in labels)
    rows = []
    for number, label in enumerate(labels):
        cells = "".join(
            f'<td class="{"rp-right" if at == number else "rp-wrong"} {shade(share)}"><b>{count:,}</b>'
            f"<small>{percent(share, 1)}</small></td>"
            for at, (count, share) in enumerate(
                zip(counts[number].tolist(), (counts / totals)[number].tolist(), strict=True)
            )
        )
        rows.append(f'<tr><th scope="row"><small>is</small> {safe(label)}</th>{cells}</tr>')
    return (
        '<div class="rp-wide"><table class="rp-confusion"><thead><tr><td></td>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _mixups(counts: np.ndarray, shares: np.ndarray, labels: Sequence[str], unit: str) -> str:
    """The most frequent mix-ups, where a square of all labels would not fit."""
    wrong = counts * (1 - np.eye(len(labels), dtype=counts.dtype))
    worst = [divmod(int(at), len(labels)) for at in np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]]
    rows = "".join(
        f"<tr><td>{safe(labels[true])}</td><td>{safe(labels[predicted])}</td><td>{counts[true, predicted]:,}</td>"
        f"<td>{percent(float(shares[true, predicted]), 1)}</td></tr>"
        for true, predicted in worst
        if wrong[true, predicted]
    )
    head = column_heads(("is", "said", unit, "share of that label"))
    table = NUMBERS.replace("rp-numbers", "rp-numbers rp-mixups")
    return f"{table}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def under_attack(report: Report) -> str:
    """How right the runs stay as words are swapped, by which swaps may be made."""
    titles = {"any": "Any swaps", "kept": "Swaps judged to keep the sense"}
    charts, groups = [], []
    for sense, title in titles.items():
        attacked = [
            (s, accuracy) for s in report.subjects if sense in s.attacks and (accuracy := s.accuracy(sense))
        ]
        if not attacked:
            continue
        drawn = [
            Line(s.name, [(n, interval.value) for n, interval in accuracy.items()])
            for s, accuracy in attacked
        ]
        caption = f"{title}: share right by the number of swaps"
        svg = lines(caption, drawn, form=lambda y: f"{100 * y:.3g} %", within=(0, 1))
        charts.append(f"<figure><figcaption>{title}</figcaption>{svg}</figure>")
        groups.append(f'<tbody><tr><th scope="rowgroup" colspan="{1 + len(SWAPS)}">{title}</th></tr>')
        for subject, accuracy in attacked:
            cells = "".join(f"<td>{_measured(interval, 1)}</td>" for interval in accuracy.values())
            groups.append(f'<tr><th scope="row">{safe(subject.name)}</th>{cells}</tr>')
        groups.append("</tbody>")
    if not groups:
        return ""
    tagging, legend = report.subjects[0].run.tagging, key(s.name for s in report.subjects)
    head = column_heads(f"{n} swap{'s' * (n != 1)}" for n in SWAPS)
    what = (
        "sentences with an error that is still flagged" if tagging else "texts that still get the right label"
    )
    return (
        f'<p class="rp-note">Share of {what}, by the number of words that may be swapped.</p>'
        f'{legend if len(report.subjects) > 1 else ""}<div class="rp-charts">{"".join(charts)}</div>\n{NUMBERS}'
        f'<thead><tr><th scope="col">run</th>{head}</tr></thead>{"".join(groups)}</table></div>'
    )
