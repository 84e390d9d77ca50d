"""Languages without spaces: recognised in training texts, and each character read as a word."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_training import SMALL, config

from wordward.config import DataSettings, PretrainConfig, TextSettings, TrainConfig
from wordward.runs import run_folder
from wordward.text.scripts import fitting, unspaced
from wordward.text.tokenizers import split_words
from wordward.train import pretrain, train

CHINESE = [f"这部电影{word}，我{end}" for word in ("很好看", "很难看", "太长") for end in ("喜欢", "不喜欢")]
JAPANESE = ["この映画はとても面白かった。", "音楽はよかったが話が長い。"]
THAI = ["หนังเรื่องนี้สนุกมาก แต่จบเร็วไป", "เพลงไพเราะ"]
SPACED = ["a warm film", "ein schöner Film", "фильм был тёплый", "영화가 정말 재미있었다", "फ़िल्म अच्छी थी"]


@pytest.mark.parametrize("texts", [CHINESE, JAPANESE, THAI])
def test_texts_without_spaces(texts: list[str]) -> None:
    assert unspaced(texts)


@pytest.mark.parametrize("text", [*SPACED, "这 部 电影 很 好看 ， 我 喜欢", "a film (电影)", "", "😀"])
def test_texts_with_spaces(text: str) -> None:
    assert not unspaced([text])


def test_each_character_is_a_word_and_others_stay_whole() -> None:
    assert split_words("这部film很OK，3星", "characters") == ["这", "部", "film", "很", "OK", "3", "星"]
    assert split_words("very naïve, it's 10<br />out", "characters") == split_words("very naïve, it's 10<br />out")
    assert split_words("ที่นี่", "characters") == ["ที่", "นี่"]  # a vowel sign stays on its letter


@given(st.text(st.characters(codec="utf-8", max_codepoint=0x0DFF)))
def test_where_there_are_spaces_it_is_the_same_as_words(text: str) -> None:
    assert split_words(text, "characters") == split_words(text, "words")


def test_a_tokenizer_that_was_chosen_stays_and_the_other_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert fitting(TextSettings(), CHINESE).tokenizer == "characters"
    assert "each of their characters is read as a word" in capsys.readouterr().err
    chosen = TextSettings(tokenizer="punctuation")
    assert fitting(chosen, CHINESE) == chosen
    assert "give `tokenizer='characters'`" in capsys.readouterr().err
    assert fitting(TextSettings(), SPACED) == TextSettings()
    assert not capsys.readouterr().err


def test_a_run_reads_later_texts_as_it_read_its_own(tmp_path: Path) -> None:
    texts = [(text, "bad" if "难" in text or "长" in text else "good") for text in CHINESE * 4]
    settings = replace(config(tmp_path, epochs=1), data=DataSettings())
    train(settings, tmp_path / "run", train=texts, quiet=True)
    assert run_folder.load_config(tmp_path / "run", TrainConfig).text.tokenizer == "characters"
    assert "电" in run_folder.load_vocabulary(tmp_path / "run")
    language = PretrainConfig(epochs=1, streams=2, window=5, held_out_share=0.2, model=SMALL, device="cpu")
    pretrain(language, tmp_path / "lm", texts=CHINESE * 4, quiet=True)
    assert run_folder.load_config(tmp_path / "lm", PretrainConfig).text.tokenizer == "characters"
