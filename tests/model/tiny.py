"""The smallest network of each family and batches for it, shared by the tests of `model`."""

import torch

from model.config import Family, LanguageModelConfig, NetworkConfig
from model.diffusion import Batch
from model.language_model import LanguageModel
from model.tokenizer import SpecialIds
from model.train_config import ObjectiveConfig, OptimConfig, TrainingConfig

VOCAB, KNOWN, LENGTH, BLOCK, WIDTH = 40, 7, 20, 5, 16
SPECIALS = SpecialIds(
    eos_id=32,
    pad_id=33,
    bos_id=34,
    end_of_chunk_id=35,
    mask_id=36,
    start_header_id=37,
    end_header_id=38,
    end_of_turn_id=39,
)


def config(family: Family = "cdlm_concept", **changes: object) -> LanguageModelConfig:
    network = NetworkConfig.model_validate(
        {
            "family": family,
            "width": WIDTH,
            "n_layers": 2,
            "n_heads": 4,
            "n_kv_heads": 2,
            "mlp_width": 24,
            "max_length": LENGTH,
            "block": BLOCK,
            "rank": 3,
            "top_k": 4,
            "top_k_unknown": 6,
            **changes,
        }
    )
    return network.language_model(vocab_size=VOCAB, n_known=KNOWN, specials=SPECIALS)


def lm(family: Family = "cdlm_concept", **changes: object) -> LanguageModel:
    """Weights five times as large as at the start of training, so that nothing is nearly zero."""
    network = LanguageModel(config(family, **changes), seed=1)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim == 2:
                parameter.mul_(5.0)
    return network


def ids(n_sequences: int = 3, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 32, (n_sequences, LENGTH), generator=generator)


def batch(n_sequences: int = 3, seed: int = 0, first_sample: int = 0) -> Batch:
    """Two chunks a sequence, each of 8 tokens and an end; every third chunk is unlabelled."""
    ids_BT = ids(n_sequences, seed)
    ids_BT[:, 0] = SPECIALS.bos_id
    ids_BT[:, [9, 18]] = SPECIALS.end_of_chunk_id
    ids_BT[:, 19] = SPECIALS.pad_id
    chunk_BT = torch.full_like(ids_BT, -1)
    for row in range(n_sequences):
        chunk_BT[row, 1:9], chunk_BT[row, 10:18] = 2 * row, 2 * row + 1
    n_chunks = 2 * n_sequences
    generator = torch.Generator().manual_seed(seed + 1)
    concepts_CM = torch.full((n_chunks, 5), -1)
    for chunk in range(n_chunks):
        concepts_CM[chunk, :2] = torch.randperm(KNOWN, generator=generator)[:2]
    labelled_C = torch.arange(n_chunks) % 3 != 2
    samples_B = torch.arange(first_sample, first_sample + n_sequences)
    return Batch(ids_BT, chunk_BT, concepts_CM, labelled_C, samples_B)


def training(n_steps: int = 20, **changes: object) -> TrainingConfig:
    return TrainingConfig.model_validate(
        {
            "n_tokens": n_steps * 6 * LENGTH,
            "batch_sequences": 6,
            "length": LENGTH,
            "dtype": "float32",
            "optim": OptimConfig(peak_lr=3e-3, warmup=0.1, decay=0.2),
            "objective": ObjectiveConfig(sparse_from=0.8),
            "validations": 2,
            "log_every": 5,
            **changes,
        }
    )


def batch_at(step: int) -> Batch:
    return batch(6, seed=step % 7, first_sample=6 * step)
