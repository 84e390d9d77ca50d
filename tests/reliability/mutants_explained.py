"""Changes to the perturbation's code that no test can notice, each with the reason."""

ZEROS = "what is divided by it is zero"
PIECES = "only how much is computed at a time, or kept: the numbers are the same"
SAMPLE = "how large a sample is; any size near it is as good"
# Changes that are the same program, or one whose numbers no test can tell from it, with the reason.
EXPLAINED: dict[str, str] = {
    "choice.py _lengths: peak > 0 -> peak >= 0": "a text of zeros stays so, whichever of its tokens is chosen",
    "choice.py _lengths: 1.0 -> 2.0": ZEROS,
    "choice.py unit: 1.0 -> 2.0": ZEROS,
    "choice.py unit: 1.0 -> 2.0 (2)": ZEROS,
    "choice.py module: 256 -> 257": SAMPLE,
    "choice.py module: 1 -> 2": SAMPLE,
    "choice.py module: 13 -> 14": SAMPLE,
    "space.py module: 1 << 23 -> 1 >> 23": PIECES,
    "space.py module: 1 -> 2": PIECES,
    "space.py module: 23 -> 24": PIECES,
    "space.py module: 1 << 23 -> 1 >> 23 (2)": PIECES,
    "space.py module: 1 -> 2 (2)": PIECES,
    "space.py module: 23 -> 24 (2)": PIECES,
    "space.py _computed: 0 -> 1": PIECES,
    "space.py _computed: 1 -> 2 (2)": PIECES,
    "space.py vectors: True -> False": "there are always as many strengths as directions",
    "space.py __init__: 0.0 -> 1.0": "distances are NaN only where vectors are",
    "space.py __init__: 0.0 -> 1.0 (2)": "where words coincide it is multiplied by their difference, zero",
    "objective.py module: 10000.0 -> 10001.0": "any lead that leaves the others no probability",
    "objective.py kl: 0.0 -> 1.0": "it is multiplied by the probability of an impossible class, zero",
    "directions.py module: 200000 -> 200001": PIECES,
    "directions.py module: 256 -> 257": PIECES,
    "directions.py module: 1 -> 2 (2)": PIECES,
    "directions.py module: 26 -> 27": PIECES,
}
