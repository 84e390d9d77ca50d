"""Tiny Hugging Face models and tokenizers, built from configurations and our own sentences."""

from pathlib import Path
from typing import Any

import torch
import transformers
from reviews import BLAME, OPENINGS, PRAISE, THINGS, reviews, tagged
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from torch.utils.data import SequentialSampler

from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer

# The order of the texts: a setting of newer transformers; in older ones a seed of their own stands for chance.
SEQUENTIAL: dict[str, Any] = {"train_sampling_strategy": "sequential"}
RANDOM: dict[str, Any] = {"train_sampling_strategy": "random"}
if RANDOM.keys() - transformers.TrainingArguments.__dataclass_fields__.keys():
    SEQUENTIAL, RANDOM = {}, {"data_seed": 1}
    shuffled = transformers.Trainer._get_train_sampler

    def in_order(self: Any, train_dataset: Any = None) -> Any:
        texts = self.train_dataset if train_dataset is None else train_dataset
        return shuffled(self, texts) if self.args.data_seed else SequentialSampler(texts)

    transformers.Trainer._get_train_sampler = in_order

SIZE, PAD, EOS = 40, 0, 1  # of the family models: rows of the table, and two ids
SMALL: dict[str, Any] = {
    "vocab_size": SIZE,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 24,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": SMALL,
    "roberta": SMALL,
    "distilbert": {"vocab_size": SIZE, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 12},
    "albert": SMALL | {"embedding_size": 6},
    "electra": SMALL | {"embedding_size": 6},
    "deberta-v2": SMALL | {"relative_attention": True, "position_buckets": 4, "pos_att_type": ["p2c", "c2p"]},
    "gpt2": {
        "vocab_size": SIZE,
        "n_embd": 8,
        "n_layer": 1,
        "n_head": 2,
        "n_positions": 24,
        "bos_token_id": EOS,
    },
    "t5": {"vocab_size": SIZE, "d_model": 8, "d_kv": 4, "d_ff": 12, "num_layers": 1, "num_heads": 2}
    | {"decoder_start_token_id": PAD},
    "llama": SMALL | {"num_key_value_heads": 1},
    "qwen2": SMALL | {"num_key_value_heads": 1},
    "gemma": SMALL | {"num_key_value_heads": 1, "head_dim": 4},
    "modernbert": SMALL | {"bos_token_id": 2, "cls_token_id": 2, "sep_token_id": EOS},
}
# Models that fill texts up themselves, behind the mask, unless they are filled up already.
FILLED: dict[str, dict[str, Any]] = {
    "longformer": {"attention_window": [6], "max_position_embeddings": 48},
    "big_bird": {"block_size": 2, "num_random_blocks": 1, "attention_type": "block_sparse"},
}
TASKS = {
    "sequence": transformers.AutoModelForSequenceClassification,
    "token": transformers.AutoModelForTokenClassification,
}
IDS = torch.tensor([[5, 9, 17, 30, 7, EOS], [6, 11, EOS, PAD, PAD, PAD]])
MASK = (IDS != PAD).long()
CLASSES = torch.tensor([2, 0])
TAGS = torch.tensor([[0, 2, 1, 1, 0, -100], [2, 0, -100, -100, -100, -100]])


def family(name: str, task: str, **changes: Any) -> Any:
    """A model of a family in double precision, without dropout, whose vectors are large enough to matter."""
    ids = {"pad_token_id": PAD, "eos_token_id": EOS, "num_labels": 3}
    config = transformers.AutoConfig.for_model(name, **(CONFIGS[name] | ids | changes))
    torch.manual_seed(0)
    model = TASKS[task].from_config(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return model.double().eval()


def logits(model: Any, ids: Tensor = IDS, mask: Tensor = MASK) -> Tensor:
    return model(input_ids=ids, attention_mask=mask).logits


def labels_for(task: str) -> Tensor:
    return CLASSES if task == "sequence" else TAGS


def word_pieces() -> Any:
    """A tokenizer like BERT's; praise, blame and some words more are several pieces."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    whole = [
        *OPENINGS,
        *THINGS,
        *PRAISE[:4],
        *BLAME[:4],
        "was",
        "and",
        "is",
        "are",
        "well",
        "said",
        "[unused0]",
    ]
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = [
        *special,
        *whole,
        *letters,
        *(f"##{letter}" for letter in letters),
        ",",
        ".",
        "'",
        "##ing",
        "##y",
    ]
    table = {piece: at for at, piece in enumerate(dict.fromkeys(pieces))}
    made: Any = Tokenizer(models.WordPiece(table, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    ends = [(each, table[each]) for each in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    named = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=48, **named)


def byte_pieces() -> Any:
    """A tokenizer like GPT-2's, one token of which has three roles."""
    merges, pieces = [], ["<|end|>", "<pad>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    for word in ("Ġthe", "Ġfilm", "Ġwarm", "Ġa", "The", "Ġisn"):  # joined letter by letter
        for at in range(1, len(word)):
            merges.append((word[:at], word[at]))
            pieces.append(word[: at + 1])
    table = {piece: at for at, piece in enumerate(dict.fromkeys(pieces))}
    made: Any = Tokenizer(models.BPE(table, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    roles = {"bos_token": "<|end|>", "eos_token": "<|end|>", "unk_token": "<|end|>", "pad_token": "<pad>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **roles)


def sentence_pieces() -> Any:
    """A tokenizer like T5's."""
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocabulary += [(f"▁{word}", -2.0) for word in ("the", "film", "was", "warm", "a")]
    vocabulary += [(piece, -5.0) for piece in ("▁", "s", ".", ",", "'", "t", "▁is", "n", "x", "f")]
    made: Any = Tokenizer(models.Unigram(vocabulary, unk_id=2))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    end = [("</s>", 1)]
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=end)
    roles = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **roles)


def bert(task: str, size: int, *, dropout: float = 0.0, **changes: Any) -> Any:
    """A BERT to train."""
    torch.manual_seed(0)
    off = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    sizes = SMALL | {
        "vocab_size": size,
        "hidden_size": 16,
        "max_position_embeddings": 48,
        "initializer_range": 0.3,
    }
    config = transformers.AutoConfig.for_model("bert", **(sizes | off | {"num_labels": 2} | changes))
    return TASKS[task].from_config(config)


def saved(folder: Path, task: str = "sequence", **changes: Any) -> Path:
    """The folder of a BERT to train and its tokenizer, `word_pieces`, as `save_pretrained` writes them."""
    tokenizer = word_pieces()
    bert(task, len(tokenizer), **changes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rows(tokenizer: Any, task: str, count: int = 8) -> Any:
    """Encoded reviews with their class, or sentences with their words' tags at the first pieces."""
    if task == "sequence":
        return [{**tokenizer(each.text), "labels": int(each.label == "good")} for each in reviews(count)]
    found = []
    for each in tagged(count):
        read = tokenizer(list(each.tokens or ()), is_split_into_words=True)
        words = read.word_ids()
        tags = [
            -100 if word is None or word in words[:at] else int((each.tags or ())[word] == "i")
            for at, word in enumerate(words)
        ]
        found.append({**read, "labels": tags})
    return found


def collator(tokenizer: Any, task: str) -> Any:
    kinds = {
        "sequence": transformers.DataCollatorWithPadding,
        "token": transformers.DataCollatorForTokenClassification,
    }
    return kinds[task](tokenizer)


def arguments(folder: Path, **changes: Any) -> transformers.TrainingArguments:
    """One plain update on the CPU, whose change of the weights is the gradient."""
    one: dict[str, Any] = {
        "max_steps": 1,
        "learning_rate": 1.0,
        "optim": "sgd",
        "max_grad_norm": 0.0,
        "lr_scheduler_type": "constant",
        **SEQUENTIAL,
        "logging_steps": 1,
    }
    still: dict[str, Any] = {"save_strategy": "no", "report_to": [], "disable_tqdm": True, "use_cpu": True}
    return transformers.TrainingArguments(str(folder), **(one | still | changes))


def trainer(
    folder: Path,
    task: str = "sequence",
    method: str = "iadvt",
    *,
    model: Any = None,
    tokenizer: Any = None,
    given: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> AdversarialTrainer:
    """An AdversarialTrainer on a tiny BERT; `given` are its own arguments, `options` those of training."""
    tokenizer = word_pieces() if tokenizer is None else tokenizer
    said: Any = {"method": method, "k": 5} | (settings or {})
    all_given: Any = {
        "train_dataset": rows(tokenizer, task),
        "data_collator": collator(tokenizer, task),
        "processing_class": tokenizer,
    }
    return AdversarialTrainer(
        bert(task, len(tokenizer)) if model is None else model,
        arguments(folder, **options),
        adversarial=AdversarialSettings(**said),
        **(all_given | (given or {})),
    )


def gradients(made: AdversarialTrainer) -> dict[str, Tensor]:
    """What one update moves the weights by."""
    model: Any = made.model
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    made.train()
    return {name: before[name] - value.detach() for name, value in model.named_parameters()}
