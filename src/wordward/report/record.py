"""The numbers of a report for programs, as JSON."""

from typing import Any

from wordward.report.contents import Report, Subject
from wordward.runs.metrics import intervals_to_json
from wordward.support.version import __version__


def record(report: Report) -> dict[str, Any]:
    """The numbers of a report for `json.dumps`, by the name of each run.

    Args:
        report: What `gather` found.

    Returns:
        Scores on dev and test texts, accuracy under attack by number of swaps, and faithfulness, with intervals.

    Examples:
        >>> from wordward.report import ReportSettings, gather, record
        >>> found = record(gather("runs/mine", ReportSettings(attack=0, sentences=0), quiet=True))
        >>> sorted(found["runs"]["mine"])
        ['accuracy_under_attack', 'dev', 'faithfulness', 'test']
    """
    return {"wordward": __version__, "runs": {subject.name: _numbers(subject) for subject in report.subjects}}


def _numbers(subject: Subject) -> dict[str, Any]:
    found = subject.faithfulness
    return {
        "dev": subject.dev and intervals_to_json(subject.dev.scores),
        "test": subject.test and intervals_to_json(subject.test.scores),
        "accuracy_under_attack": {sense: intervals_to_json(subject.accuracy(sense)) for sense in subject.attacks},
        "faithfulness": found and found.to_json(),
    }
