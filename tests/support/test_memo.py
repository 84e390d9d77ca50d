"""What is asked once is remembered, as long as there is room."""

from wordward.support.memo import Memo


def test_each_is_asked_once_until_there_are_too_many() -> None:
    asked: list[list[str]] = []

    def lengths(texts: list[str]) -> list[int]:
        asked.append(texts)
        return [len(text) for text in texts]

    remembered = Memo(lengths, most=2)
    assert remembered(["a", "bb", "a"]) == [1, 2, 1]
    assert remembered(["bb", "ccc"]) == [2, 3]
    assert remembered(["bb"]) == [2]  # three are known, so it starts again
    assert remembered(["bb"]) == [2]
    remembered.forget()
    assert remembered(["bb"]) == [2]
    assert asked == [["a", "bb"], ["ccc"], ["bb"], ["bb"]]
