"""A small random network, loud enough that its tokens differ: what explaining tests explain."""

import torch

from model.config import BackboneConfig, BottleneckConfig, LanguageModelConfig
from model.language_model import LanguageModel

BLOCK, MASK, EOS, END_OF_CHUNK, FIRST_TEXT, VOCABULARY = 8, 3, 1, 4, 5, 43


def loud_network(
    attention: str = "block_causal", seed: int = 1, rank: int | None = 4
) -> LanguageModel:
    """Weights far from the start, as after training, so that greedy choices have no near ties."""
    backbone = BackboneConfig.model_validate(
        {
            "vocab_size": VOCABULARY, "width": 12, "n_layers": 3, "n_heads": 3, "n_kv_heads": 1,
            "mlp_width": 20, "max_length": 48, "block": BLOCK, "attention": attention,
        }
    )  # fmt: skip
    bottleneck = BottleneckConfig(n_known=9, n_unknown=14, rank=rank, top_k=3, top_k_unknown=5)
    config = LanguageModelConfig(
        backbone=backbone, bottleneck=bottleneck, bos_id=0, eos_id=EOS, pad_id=2, mask_id=MASK,
        end_of_chunk_id=END_OF_CHUNK,
    )  # fmt: skip
    lm = LanguageModel(config, seed=seed).eval()
    with torch.no_grad():
        for parameter in lm.parameters():
            if parameter.ndim == 2:
                parameter.mul_(20.0)
    return lm


def some_prompts(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    """Text tokens, no special ones."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(FIRST_TEXT, VOCABULARY, (rows, length), generator=generator)
