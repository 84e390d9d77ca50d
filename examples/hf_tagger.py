"""iAdvT and iVAT together on a Hugging Face tagger, with word pieces and texts that have no tags."""

from tempfile import TemporaryDirectory
from typing import Any

import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer

WRONG = ["the film are good", "the films is long"]
TEXTS = ["the film is good", "the films are long", "we saw the film", *WRONG]
PIECES = ["[PAD]", "[UNK]", *"the film ##s is are good long we saw".split()]  # films is read as film ##s

pieces: Any = Tokenizer(models.WordPiece({piece: at for at, piece in enumerate(PIECES)}, unk_token="[UNK]"))
pieces.pre_tokenizer, pieces.decoder = pre_tokenizers.Whitespace(), decoders.WordPiece()
special = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **special)
transformers.set_seed(0)
sizes = {"dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 32, "num_labels": 2}
config = transformers.AutoConfig.for_model("distilbert", vocab_size=len(PIECES), **sizes)
model = transformers.AutoModelForTokenClassification.from_config(config)


def tagged(text: str) -> dict[str, Any]:
    read, wrong = tokenizer(text), [text in WRONG and word in ("is", "are") for word in text.split()]
    words: Any = read.word_ids()  # the tag of a word stands at its first piece
    return {**read, "labels": [-100 if w in words[:at] else int(wrong[w]) for at, w in enumerate(words)]}


data: Any = [tagged(text) for text in TEXTS]
settings = AdversarialSettings(method="iadvt+ivat", k=3, epsilon=0.1)
collator, more = transformers.DataCollatorForTokenClassification(tokenizer), [tokenizer("we saw long films")]
with TemporaryDirectory() as out:
    args = transformers.TrainingArguments(out, max_steps=60, learning_rate=0.01, use_cpu=True)
    trainer = AdversarialTrainer(model, args, collator, data, unlabelled_dataset=more, adversarial=settings)
    trainer.train()
    logits, tags, _ = trainer.predict(data)
print(f"right tags {(logits.argmax(-1) == tags)[tags >= 0].mean():.0%}")  # type: ignore
