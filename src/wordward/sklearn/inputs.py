"""What a TextClassifier is given, checked: texts, labels, parameters."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from wordward.support.errors import SettingError


def texts_of(values: Any, what: str = "X", *, filled: bool = False) -> list[str]:
    """Texts of a list, an array, a pandas Series or the like; `filled`: none of them empty."""
    if isinstance(values, (str, bytes, Mapping)):
        raise SettingError(what, f"expected {what} to be several texts; got one {type(values).__name__}: pass a list")
    if getattr(values, "ndim", 1) != 1:
        raise SettingError(
            what, f"expected {what} to be one column of texts; got shape {values.shape}: choose a column"
        )
    texts = list(values)
    if not texts:
        raise SettingError(what, f"expected {what} to be one text or more; got none")
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise SettingError(
                what, f"expected {what} to be texts (str); {what}[{at}] is {text!r} ({type(text).__name__})"
            )
        if filled and not text.strip():
            raise SettingError(
                what, f"expected words in every text to learn from; {what}[{at}] is empty: leave it out"
            )
    return [str(text) for text in texts]  # numpy's strings are a kind of their own


def labels_of(y: Any) -> np.ndarray:
    """One class for each text."""
    if y is None:
        raise SettingError("y", "expected labels, requires y to be passed, but the target y is None")
    _refuse_missing(y)
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    try:
        check_classification_targets(labels)
    except TypeError:  # they cannot be put in order
        kinds = sorted({type(label).__name__ for label in labels})
        raise SettingError(
            "y", f"expected labels of one kind, none of them missing; got {' and '.join(kinds)}"
        ) from None
    return labels


def _refuse_missing(y: Any) -> None:
    """Refuse labels that are missing, which an array of strings would hold as the words nan or None."""
    kind = getattr(y, "dtype", object)
    if not hasattr(y, "__iter__") or (isinstance(kind, np.dtype) and not kind.hasobject):
        return
    for at, label in enumerate(y):
        nan = isinstance(label, (float, np.floating)) and np.isnan(label)
        if label is None or nan or type(label).__name__ == "NAType":  # the last is of pandas
            raise SettingError(
                "y", f"expected a label for every text; y[{at}] is {label!r} (NaN, missing): leave it out"
            )


def names_of(classes: np.ndarray) -> list[str]:
    """The classes as a run folder writes them."""
    if len(classes) < 2:
        raise SettingError("y", f"expected two classes or more; got one class, {classes.tolist()}")
    names = [str(name).strip() for name in classes.tolist()]
    if "" in names or len(set(names)) < len(names):
        raise SettingError(
            "y", f"expected classes that differ when written, none of them empty; got {classes.tolist()}"
        )
    return names


def plain(value: Any) -> Any:
    """A number of numpy's, such as a grid may hold, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
