"""`wordward report`, used as a person would: one page on a run."""

import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reported import Page, evaluated, numbers
from rich.console import Console

from wordward.attack import sense as judging
from wordward.attack.attacked import Attacked, Change
from wordward.attack.wording import stretches
from wordward.cli.main import _parse, main
from wordward.config.settings import TrainConfig
from wordward.config.toml import from_toml
from wordward.explain.html import render
from wordward.explain.wording import percent
from wordward.report.contents import Report, ReportSettings
from wordward.report.gathering import gather
from wordward.report.html import draw
from wordward.report.tables import best_epoch, yardsticks
from wordward.runs import run_folder
from wordward.runs.metrics import Interval, mcnemar
from wordward.runs.opening import load_run
from wordward.support import console
from wordward.text.loading import read_as


def test_edits_of_other_kinds_are_shown_by_kind(runs: Path) -> None:
    out = runs / "edits.html"
    flags = ["--test", str(runs / "test.csv"), "--attack", "30", "--edits", "typo,space", "--quiet"]
    assert main(["report", str(runs / "plain"), *flags, "--device", "cpu", "--out", str(out)]) == 0
    shown = Page(out)
    assert "Edits (typo, space) are made in 30 test texts" in shown.text
    assert "4 edits" in shown.text
    assert "swaps judged" not in shown.text
    assert re.search(r"edit (?:typo|space): \w+ → \w+", shown.text)
    (table,) = [rows for rows in shown.rows.values() if rows[0][0] == "run" or "kind of edit" in str(rows)]
    assert {"typo", "space"} <= {row[0] for row in table}


@pytest.mark.parametrize(
    ("kind", "names", "data", "heading"),
    [
        ("page", ["mine", "plain"], "test.csv", "Test texts"),
        ("tags", ["tagger", "tagger2"], "test.conll", "Test sentences"),
    ],
)
def test_the_numbers_are_those_of_evaluate(
    kind: str,
    names: list[str],
    data: str,
    heading: str,
    runs: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = request.getfixturevalue(kind)
    wanted = [evaluated(capsys, runs / name, str(runs / data)) for name in names]
    assert shown.rows[heading][0][1:] == names
    assert numbers(shown, heading) == [[each[measure] for each in wanted] for measure in wanted[0]]
    assert ("f0.5" in wanted[0]) == (kind == "tags")


def test_runs_that_learn_from_the_same_texts_share_a_yardstick(runs: Path, page: Page, tags: Page) -> None:
    for shown, heading, name in ((page, "Dev texts", "plain"), (tags, "Dev sentences", "tagger2")):
        entry = json.loads((runs / name / "result.json").read_text())["yardstick"]
        assert shown.rows[heading][0][2:] == [name, entry["name"]]
        values = [row[-1].split(" %")[0] for row in numbers(shown, heading)]
        assert values == [f"{100 * value:.2f}" for value in entry["dev"].values()]
    report = gather(runs / "mine", ReportSettings(attack=0, sentences=0), against=[runs / "plain"], device="cpu")
    first, second = report.subjects
    assert second.yardstick is not None
    other = replace(second, yardstick=second.yardstick._replace(scores={"error": Interval(0.5, 0.4, 0.6)}))
    found = yardsticks(replace(report, subjects=(first, other)))
    assert [each.name for each in found] == [f"linear model on word counts, of {name}" for name in ("mine", "plain")]
    tagger = gather(runs / "tagger", ReportSettings(attack=0, sentences=0, positive="c"), device="cpu").subjects[0]
    assert tagger.yardstick is None  # its F0.5 is that of another tag


def test_dev_numbers_are_those_of_the_run(runs: Path, page: Page) -> None:
    for column, name in enumerate(("mine", "plain")):
        dev = json.loads((runs / name / "result.json").read_text())["dev"]
        shown = [row[column].split(" %")[0] for row in numbers(page, "Dev texts")]
        assert shown == [f"{100 * dev[measure]:.2f}" for measure in ("error", "macro_f1")]
    assert "When mine was trained" not in page.text


def test_the_headline_is_the_number_that_counts(page: Page, tags: Page) -> None:
    value, interval = numbers(page, "Test texts")[0][0].split(" % ")
    big = f"{value} % Error on 60 test texts: share of texts that get the wrong label; 0 % is best. "
    assert f"{big}95 % interval {interval}." in page.text
    assert "% F0.5 on 50 test sentences" in tags.text


def test_confusion_counts_what_is_predicted(runs: Path, page: Page, tags: Page) -> None:
    run = load_run(runs / "mine", device="cpu")
    examples = read_as(run.config.data, str(runs / "test.csv"))
    said = [record.label for record in run.predict([example.text for example in examples])]
    rows = page.rows["Which labels it mixes up"]
    for row, true in zip(rows[1:], run.labels, strict=True):
        here = [guess for guess, example in zip(said, examples, strict=True) if example.label == true]
        assert row[0] == f"is {true}"
        counts = [here.count(guess) for guess in run.labels]
        assert row[1:] == [f"{n} {100 * n / len(here):.1f} %" for n in counts]
    counted = [int(cell.split()[0]) for row in tags.rows["Which tags it mixes up"][1:] for cell in row[1:]]
    words = sum(len(line.split()) == 2 for line in (runs / "test.conll").read_text().split("\n"))
    assert sum(counted) == words


def test_an_interval_that_tells_nothing_is_not_shown(runs: Path) -> None:
    settings = ReportSettings(test=str(runs / "test.csv"), attack=0, sentences=0)
    report = gather(runs / "mine", settings, device="cpu", quiet=True)
    (first,) = report.subjects
    assert first.test is not None
    for interval, said in ((Interval(1.0, 1.0, 1.0), True), (Interval(1.0, 0.9, 1.0), False)):
        measured = {"error": Interval(0.0, 0.0, 0.0) if said else interval, "macro_f1": interval}
        subject = replace(first, dev=None, test=replace(first.test, scores=measured))
        drawn = draw(replace(report, subjects=(subject,)))
        assert ("<br>No interval.</p>" in drawn) is said
        assert ("<b>100.00\u00a0%</b><small>no interval</small>" in drawn) is said
        assert ("Where there is no interval, texts drawn from these all give the same" in drawn) is said


def test_quiet_shows_no_progress(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for quiet in (False, True):
        shown = io.StringIO()
        monkeypatch.setattr(console, "console", Console(file=shown, force_terminal=True))
        gather(runs / "mine", ReportSettings(str(runs / "test.csv"), 0, 0), device="cpu", quiet=quiet)
        assert (shown.getvalue() == "") is quiet


def section(report: Report, name: str) -> str:
    """The HTML of one section of a report without explanations."""
    return draw(report).partition(f'<section id="{name}">')[2].partition("</section>")[0]


def paired(report: Report) -> str:
    """The list of comparisons of two runs, as a person reads it."""
    (found,) = re.findall('<ul class="rp-list">(.*?)</ul>', section(report, "results"), re.S) or [""]
    return " ".join(re.sub("<.*?>", "", found).split())


def test_pairs_are_counted_by_who_is_wrong_alone(runs: Path) -> None:
    settings = ReportSettings(test=str(runs / "test.csv"), attack=0, sentences=0)
    report = gather(runs / "mine", settings, against=[runs / "plain"], device="cpu", quiet=True)
    first, other = report.subjects
    assert first.test is not None
    assert other.test is not None
    off = first.test.confusion.sum() - np.trace(first.test.confusion)
    assert first.test.wrong.sum() == off == round(60 * first.test.scores["error"].value)
    ours = np.arange(60) < 20
    for theirs, said in (
        (
            np.arange(60) % 40 < 3,
            "17 texts only mine gets wrong, 3 only plain. Such a difference is unlikely to be chance",
        ),
        (
            np.arange(60) < 22,
            "0 texts only mine gets wrong, 2 only plain. Such a difference may well be chance",
        ),
        (np.arange(60) < 19, "1 text only mine gets wrong, 0 only plain."),
    ):
        subjects = (
            replace(first, test=replace(first.test, wrong=ours)),
            replace(other, test=replace(other.test, wrong=theirs)),
        )
        told = paired(replace(report, subjects=subjects))
        assert f"mine against plain: {said}" in told
        p = mcnemar(int((ours & ~theirs).sum()), int((theirs & ~ours).sum()))
        assert f"p {f'= {p:.2f}' if p >= 0.01 else '< 0.01'}" in html.unescape(told)
    for wrong, said in (
        (ours, "they get the very same texts wrong"),
        (ours & False, "they get every text right"),
    ):
        subjects = tuple(replace(each, test=replace(first.test, wrong=wrong)) for each in (first, other))
        told = paired(replace(report, subjects=subjects))
        assert told == f"mine against plain: {said}."
    own = replace(report, shown_from="dev", same_dev=False)  # other texts: nothing to pair
    assert paired(own) == ""


def test_the_last_of_the_better_epochs_is_the_one_kept(runs: Path) -> None:
    report = gather(runs / "mine", ReportSettings(attack=0, sentences=0), device="cpu", quiet=True)
    metrics = [{"epoch": n, "loss": 1.0, "dev": {"error": 0.5}, "best": n < 3, "seconds": 1.0} for n in (1, 2, 3)]
    subject = replace(report.subjects[0], metrics=metrics)
    assert best_epoch(subject) == 2
    drawn = section(replace(report, subjects=(subject,)), "learning")
    assert "<td>2 (kept)</td>" in drawn
    assert drawn.count("(kept)") == drawn.count("rp-best") == 1


def test_telling_sentences_stand_with_what_their_swap_does(runs: Path, page: Page) -> None:
    run = load_run(runs / "mine", device="cpu")
    captions = re.findall(
        r'<figure class="rp-telling">\n<figcaption>(.*?)</figcaption>\n(.*?)</figure>', page.source, re.S
    )
    assert captions
    for caption, picture in captions:
        told = html.unescape(re.sub("<.*?>", " ", caption)).split()
        word, toward, label = told[0], told[2], told[3]
        shown = re.sub("<r[pt]>.*?</r[pt]>", "", re.findall(r'<p class="ww-text" dir="auto">(.*?)</p>', picture)[0])
        text = html.unescape(re.sub("<.*?>", "", shown))
        before, after = run.predict([text, re.sub(rf"\b{word}\b", toward, text, count=1)])
        assert before.label == label
        assert percent(before.probabilities[label]).split() == told[4:6]
        if text.split().count(word) == 1:
            assert percent(after.probabilities[label]).split() == [told[7], told[8].rstrip(":")]
            assert ("becomes" in told) == (after.label != label)


def test_learning_curves_hold_every_epoch(runs: Path, page: Page) -> None:
    svg = re.findall(r'<svg class="rp-lines".*?</svg>', page.source, re.S)
    for name in ("mine", "plain"):
        metrics = run_folder.read_metrics(runs / name)
        told = ", ".join(f"{100 * each['dev']['error']:.3g} %" for each in metrics)
        assert f"{name}: {told}" in html.unescape(svg[1])
        rows = [row for row in page.rows["How it learnt"] if f"{metrics[-1]['loss']:.4f}" in row]
        assert len(rows) == 1
    assert svg[0].count("<polyline") == 2
    assert svg[0].count("<circle") == 6
    assert svg[1].count('class="rp-best"') == 2


def test_attack_numbers_are_those_of_the_attack_command(
    runs: Path, page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    for sense, heading in (("any", "any swaps"), ("kept", "swaps judged to keep the sense")):
        command = ["attack", str(runs / "mine"), str(runs / "test.csv"), "--limit", "40", "--json", "--quiet"]
        assert main([*command, "--sense", sense, "--device", "cpu"]) == 0
        found = json.loads(capsys.readouterr().out)
        said = f"mine, {heading}: {found['flipped']} of {found['attacked']} texts it got right were flipped"
        assert said in page.text
        share = f"{100 * found['accuracy_under_attack']['value']:.1f} %"
        rows = page.rows["Adversarial texts"]
        at = next(number for number, row in enumerate(rows) if row[0].lower() == heading)
        assert rows[at + 1][0] == "mine"
        assert rows[at + 1][-1].startswith(share)


def test_few_words_to_judge_swaps_by_are_told(
    runs: Path, page: Page, tags: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load_run(runs / "mine", device="cpu")
    counts = run.class_counts()
    assert counts is not None
    assert f"Only {int((counts.sum(1) >= 5).sum())} words are in 5 training texts or more" in page.text
    assert "training texts or more" not in tags.text  # for a tagger nothing judges
    monkeypatch.setattr(judging, "FEW", 3)
    assert judging.few_to_judge_by(run) is None


def test_adversarial_texts_flip_and_stand_under_what_is_judged_of_them(runs: Path) -> None:
    settings = ReportSettings(test=str(runs / "test.csv"), attack=60, sentences=60)
    report = gather(runs / "mine", settings, device="cpu", quiet=True)
    first, drawn = report.subjects[0], draw(report)
    fooled, swayed = (drawn.partition(heading)[2].partition("<h")[0] for heading in ("Fooled: ", "Swayed: the sense"))
    assert shown_pairs(swayed)
    originals = [plain(old) for old, _ in shown_pairs(drawn)]
    assert len(set(originals)) == len(originals)
    judged = {"kept": (fooled, first.attacks["kept"]), "changed": (swayed, first.attacks["any"])}
    for sense, (part, results) in judged.items():
        found = [each for each in results if each.flipped and each.sense == sense]
        assert all(any(change.sense == sense for change in each.changes) for each in found)
        shown = shown_pairs(part)
        assert {(plain(old), plain(new)) for old, new in shown} <= {(e.text, e.adversarial) for e in found}
        said = first.run.predict([plain(text) for pair in shown for text in pair])
        labels = [record.label for record in said]
        assert all(before != after for before, after in zip(labels[::2], labels[1::2], strict=True))
        for old, new in shown:
            assert old.replace("<del>", "") != old
            assert re.sub("<del>.*?</del>", "", old) == re.sub("<ins>.*?</ins>", "", new)


def shown_pairs(part: str) -> list[tuple[str, str]]:
    """Original and adversarial texts of a part of a page, with their marks."""
    texts = re.findall(r'<dd class="rp-one" dir="auto">(.*?)</dd>', part)
    return list(zip(texts[::2], texts[1::2], strict=True))


def plain(marked: str) -> str:
    return html.unescape(re.sub("</?(del|ins)>", "", marked))


def test_long_texts_are_cut_between_the_swaps() -> None:
    filler = " ".join(f"word{at}" for at in range(100))
    text = f"{filler} good {filler} fine {filler}"
    start, second = text.index("good"), text.index("fine")
    changes = (
        Change(100, "good", "bad", start, start + 4, "changed"),
        Change(201, "fine", "poor", second, second + 4, "changed"),
    )
    attacked = Attacked(text, text, "x", changes=changes, outcome="flipped")
    drawn = render("report/templates/attacked.html.j2", attacked=attacked, stretches=stretches)
    ((old, new),) = shown_pairs(drawn)
    assert len(old) < 700
    pieces = re.split("<del>good</del>|<del>fine</del>", old)
    assert pieces[0].startswith("… word")
    assert pieces[0].endswith("word99 ")
    assert pieces[1].startswith(" word0 ")
    assert " … " in pieces[1]
    assert pieces[2].endswith(" …")
    assert new == old.replace("<del>good</del>", "<ins>bad</ins>").replace("<del>fine</del>", "<ins>poor</ins>")


def test_the_page_needs_nothing_from_elsewhere(page: Page, tags: Page) -> None:
    for shown in (page, tags):
        assert "<script" not in shown.source
        assert not re.search(r"https?:|url\(|@import", shown.source)
        assert "default-src 'none'" in shown.source
        ids = set(re.findall(r' id="([^"]+)"', shown.source))
        assert {link.removeprefix("#") for link in shown.links} == ids
        assert len(shown.source) < 300_000
        assert str(Path.home()) not in shown.source.replace(str(Path.cwd()), "")


def test_every_section_says_what_it_shows(page: Page) -> None:
    sections = re.findall(r'<section id="\w+">\n<h2>.*?</section>', page.source, re.S)
    assert len(sections) == 8
    assert all('class="rp-say"' in section for section in sections)


def test_settings_on_the_page_train_the_run_again(runs: Path, page: Page, tmp_path: Path) -> None:
    text = html.unescape(re.findall(r"<pre>(.*?)</pre>", page.source, re.S)[0])
    assert from_toml(TrainConfig, text) == run_folder.load_config(runs / "mine", TrainConfig)
    file = tmp_path / "settings.toml"
    file.write_text(text)
    command = _parse(["train", "--config", str(file), "--out", str(tmp_path / "again")])
    assert command.settings == run_folder.load_config(runs / "mine", TrainConfig)
    made = {row[0]: row[1:] for row in page.rows["How it was made"]}
    result = json.loads((runs / "mine" / "result.json").read_text())
    assert made["seed"] == ["0"]
    assert made["method"] == ["iAdvT", "Baseline"]
    assert made["texts"] == ["270 train, 30 dev"]
    assert made["versions"][0].startswith(f"wordward {result['versions']['wordward']}, torch")
    assert made["device"] == [result["device"]]


def test_a_tagger_shows_its_flags_and_swaps(tags: Page) -> None:
    assert "gives each of its words one of 2 tags: c, i." in tags.text
    assert re.search(r"are → \w+ i >?\d+\.\d % → <?\d+\.\d %: the tag of “are” (becomes c|stays)", tags.text)
    assert "not tagged i" in tags.text
    assert "sentences with a word tagged i were flipped" in tags.text
    assert "flagged error" not in tags.text


def test_the_same_page_twice(runs: Path, tmp_path: Path) -> None:
    settings = ReportSettings(test=str(runs / "test.csv"), attack=20, seed=3)
    first, second = (draw(gather(runs / "mine", settings, device="cpu", quiet=True)) for _ in range(2))
    assert first == second
    other = draw(gather(runs / "mine", replace(settings, seed=4), device="cpu", quiet=True))
    assert other != first
