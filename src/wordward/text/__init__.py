"""From examples to ids: tokenizers, vocabularies, word pieces, batches, corpora and their cache."""

from wordward.text.vocabulary import SPECIALS, Token, Vocabulary, tokenize

__all__ = ["SPECIALS", "Token", "Vocabulary", "tokenize"]
