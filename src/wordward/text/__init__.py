"""From examples to ids: tokenizers, vocabularies, word pieces, batches, corpora and their cache."""

from wordward.text.batches import pad
from wordward.text.tokenizers import Token, tokenize
from wordward.text.vocabulary import SPECIALS, Vocabulary

__all__ = ["SPECIALS", "Token", "Vocabulary", "pad", "tokenize"]
