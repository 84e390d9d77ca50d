"""Reproduce a table of the paper: run what is missing of its columns, and show our results beside the paper's."""

from collections.abc import Sequence
from pathlib import Path

from experiments.column import ColumnRuns
from experiments.settings import Plan
from experiments.tables import TABLES
from wordward.datasets import MissingError
from wordward.support import wording
from wordward.support.console import say
from wordward.support.distributed import refuse_several
from wordward.support.errors import SettingError, WordwardError


class TableError(WordwardError, RuntimeError):
    """Columns that failed, or no corpus found, with the part of the table that could be made."""

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(message)
        self.shown = shown


def reproduce(
    table: str, plan: Plan, *, rows: Sequence[str] = (), results_folder: Path = Path("experiments/results")
) -> str:
    """Run the missing parts of a table and return it as Markdown, our results next to the paper's."""
    refuse_several("reproducing a table")
    _check(table, plan, rows)
    shown, failed, missing = [], [], 0
    for column in TABLES[table]:
        wanted = [row for row in column.rows if not rows or row.name in rows]
        try:
            shown.append(ColumnRuns(column, plan, results_folder / f"{column.name}.jsonl").table(wanted))
        except MissingError as error:
            if len(TABLES[table]) == 1:
                raise
            say(f"{column.name} was not found and is skipped", quiet=plan.quiet)
            shown.append(f"### {column.title}\n\nnot found: {wording.shown(str(error))}\n")
            missing += 1
        except (ValueError, OSError, RuntimeError) as error:
            if len(TABLES[table]) == 1:
                raise
            say(f"{column.name} failed: {error}", quiet=plan.quiet)
            shown.append(f"### {column.title}\n\nfailed: {wording.shown(str(error))}\n")
            failed.append(f"{column.name}: {error}")
        except KeyboardInterrupt:
            say("run the same command again to continue", quiet=plan.quiet)
            raise
    tables = "\n".join(shown)
    if failed:
        raise TableError(f"{len(failed)} of the {len(TABLES[table])} columns failed: {'; '.join(failed)}", tables)
    if missing == len(TABLES[table]):
        raise TableError(f"none of the {missing} corpora of {table} was found, so nothing was trained", tables)
    return tables


def _check(table: str, plan: Plan, rows: Sequence[str]) -> None:
    """Refuse a table, rows or a folder that there are not."""
    if table not in TABLES:
        raise SettingError("table", f"expected a table among {', '.join(TABLES)}; got {table!r}")
    known = dict.fromkeys(row.name for column in TABLES[table] for row in column.rows)
    if unknown := [row for row in rows if row not in known]:
        raise SettingError("rows", f"expected rows of {table} ({', '.join(known)}); got {', '.join(unknown)}")
    if not plan.experiments.is_dir():
        raise SettingError("experiments", f"{plan.experiments} holds no experiments: run this in a clone of wordward")
