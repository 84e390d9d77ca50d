"""iAdvT on a Hugging Face classifier: one argument more than plain training."""

from tempfile import TemporaryDirectory
from typing import Any

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from wordward.hf.explainer import explain
from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer

PRAISE = ["the film was warm", "a funny story", "a bright and funny ending", "the story was bright"]
BLAME = ["the film was dull", "a bland story", "a cold and bland ending", "the story was cold"]
texts, labels = PRAISE + BLAME, [1] * len(PRAISE) + [0] * len(BLAME)

# Yours come from AutoTokenizer.from_pretrained and AutoModelForSequenceClassification.from_pretrained.
known = ["[PAD]", "[UNK]", *sorted({word for text in texts for word in text.split()})]
words: Any = Tokenizer(models.WordLevel({word: at for at, word in enumerate(known)}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
transformers.set_seed(0)
sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
named = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
config = transformers.AutoConfig.for_model("bert", vocab_size=len(known), **sizes, **named)
model = transformers.AutoModelForSequenceClassification.from_config(config)

data: Any = [{**tokenizer(text), "labels": label} for text, label in zip(texts, labels, strict=True)]
settings = AdversarialSettings(method="iadvt", k=None)  # toward any of the few words
with TemporaryDirectory() as out:
    args = transformers.TrainingArguments(out, max_steps=40, learning_rate=0.003, use_cpu=True)
    trainer = AdversarialTrainer(model, args, train_dataset=data, processing_class=tokenizer, adversarial=settings)
    trainer.train()
    found: Any = trainer.predict(data).predictions
print(f"training error {(found.argmax(-1) != labels).mean():.0%}")
for place in explain(model, tokenizer, ["the film was warm"], settings=settings)[0].places:
    print(f"{place.word:>6} is pulled toward {place.pull.toward if place.pull else 'nothing'}")
