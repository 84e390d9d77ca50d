"""The paper's tables: rows, published numbers, and the corpus each column needs."""

from dataclasses import dataclass, replace

FOLDS = 10  # of the columns whose test texts are too few to tell rows apart


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    name: str  # of its TOML file
    title: str
    paper: float | None  # error in percent, or F0.5; None: not in the paper


@dataclass(frozen=True)
class Column:
    """One data set of a table: its rows live in experiments/<name>/<row>.toml."""

    name: str
    title: str
    rows: tuple[Row, ...]
    cited: tuple[tuple[str, float], ...] = ()  # rows that the paper only cites
    stand_in: str = ""  # how the corpus differs from the paper's, whose numbers are shown
    attacked: int = 0  # how many test texts are also attacked
    folds_of: str = ""  # the column whose texts, those of its test, too, are tested in folds: fold and seed are one

    @property
    def settings(self) -> str:
        """The folder of its TOML files in experiments/."""
        return self.folds_of or self.name

    @property
    def runs(self) -> str:
        """What several runs of a row differ in."""
        return "folds" if self.folds_of else "seeds"


def _rows(baseline: float, advt: float, iadvt: float, vat: float, ivat: float) -> tuple[Row, ...]:
    return (
        Row("baseline", "Baseline", baseline),
        Row("advt", "AdvT-Text", advt),
        Row("iadvt", "iAdvT-Text", iadvt),
        Row("vat", "VAT-Text", vat),
        Row("ivat", "iVAT-Text", ivat),
    )


IMDB = Column(
    "imdb",
    "IMDB, test error (%)",
    (
        Row("baseline", "Baseline", 7.05),
        Row("random", "Random Perturbation (Labeled)", 6.74),
        Row("iadvt-rand", "iAdvT-Rand", 6.69),
        Row("iadvt-best", "iAdvT-Best", 6.64),
        Row("advt", "AdvT-Text", 6.12),
        Row("iadvt", "iAdvT-Text", 6.08),
        Row("random-kl", "Random Perturbation (Labeled + Unlabeled)", 6.44),
        Row("ivat-rand", "iVAT-Rand", 6.08),
        Row("ivat-best", "iVAT-Best", 6.30),
        Row("vat", "VAT-Text", 5.69),
        Row("ivat", "iVAT-Text", 5.66),
    ),
    (
        ("Full+Unlabeled+BoW (Maas et al. 2011)", 11.11),
        ("Paragraph Vectors (Le and Mikolov 2014)", 7.42),
        ("SA-LSTM (Dai and Le 2015)", 7.24),
        ("One-hot bi-LSTM (Johnson and Zhang 2016)", 5.94),
    ),
    attacked=1000,
)
ELEC = Column("elec", "Elec, test error (%)", _rows(6.24, 5.94, 5.58, 5.66, 5.18))
RCV1 = Column("rcv1", "RCV1, test error (%)", _rows(12.01, 10.93, 10.07, 11.80, 11.68))
ROTTEN = Column("rotten_tomatoes", "Rotten Tomatoes, test error (%)", _rows(17.36, 15.84, 14.24, 14.26, 14.12))
DBPEDIA = Column("dbpedia", "DBpedia, test error (%)", _rows(0.94, 0.92, 0.99, 0.91, 0.93))
FCE = Column(
    "fce",
    "FCE-public, F0.5 (%)",
    (
        Row("baseline", "Baseline", 39.21),
        Row("random", "Random Perturbation", 39.90),
        Row("advt", "AdvT-Text", 42.28),
        Row("iadvt", "iAdvT-Text", 42.26),
        Row("vat", "VAT-Text", 41.81),
        Row("ivat", "iVAT-Text", 41.88),
    ),
    (("BiLSTM w/ Skipgram (Rei and Yannakoudakis 2016)", 41.1), ("BiLSTM w/ GWE (Kaneko et al. 2017)", 41.4)),
)

ELEC_STAND_IN = Column(
    "elec_standin",
    "Amazon electronics reviews, test error (%)",
    ELEC.rows,
    stand_in="not the Elec of Johnson and Zhang (2015) but Amazon electronics reviews of the LARA collection, "
    "25,000 + 25,000 chosen by Elec's recipe (1-2 stars against 4-5, balanced, no products shared with test) and "
    "200,000 without labels; the paper's numbers are for Elec",
)
R52 = Column(
    "r52",
    "Reuters-21578 R52, test error (%)",
    RCV1.rows,
    stand_in="not RCV1, whose texts may not be redistributed, but the 52 classes of Reuters-21578 (ModApte split) "
    "with 6,532 + 2,568 texts and 11,467 without labels; the paper's numbers are for RCV1",
)


def _in_folds(column: Column, numbers: str) -> Column:
    """A column whose texts are tested in folds; `numbers`: what the paper's are for."""
    how = "all labelled texts in ten folds, each tested by models that were trained on the nine others"
    return replace(
        column,
        name=f"{column.name}_folds",
        title=column.title.replace(",", " in ten folds,"),
        stand_in=f"{how}; the paper's numbers are for {numbers}",
        folds_of=column.name,
    )


ROTTEN_FOLDS, R52_FOLDS = _in_folds(ROTTEN, "one division"), _in_folds(R52, "RCV1")
DBPEDIA_SAMPLE = Column(
    "dbpedia_sample",
    "DBpedia, a sample, test error (%)",
    DBPEDIA.rows,
    stand_in="a sample of DBpedia (Zhang et al. 2015): 36,936 of its 560,000 training texts and 7,600 of its 70,000 "
    "test texts; the paper's numbers are for all of it",
)

_TRANSFORMER = (
    Row("baseline", "Baseline", None),
    Row("freelb", "FreeLB", None),
    Row("advt", "AdvT-Text", None),
    Row("iadvt", "iAdvT-Text", None),
    Row("vat", "VAT-Text", None),
    Row("ivat", "iVAT-Text", None),
)
MINILM_ROTTEN = Column(
    "minilm_rotten_tomatoes",
    "all-MiniLM-L6-v2 on Rotten Tomatoes, test error (%)",
    _TRANSFORMER,
    attacked=1000,
)
MINILM_IMDB = Column(
    "minilm_imdb", "all-MiniLM-L6-v2 on a slice of IMDB, test error (%)", _TRANSFORMER, attacked=1000
)

TABLES: dict[str, tuple[Column, ...]] = {
    "imdb": (IMDB,),
    "elec-rcv1-rotten": (ELEC, ELEC_STAND_IN, RCV1, R52, ROTTEN),
    "folds": (ROTTEN_FOLDS, R52_FOLDS),
    "dbpedia": (DBPEDIA, DBPEDIA_SAMPLE),
    "fce": (FCE,),
    "minilm": (MINILM_ROTTEN, MINILM_IMDB),
}
