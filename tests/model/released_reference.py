"""The released network written out plainly in float64, from the names of its tensors (method §2-3).

Shares nothing with `model`: it is what `model.released` is compared with where no output of the
released package is at hand. `checkpoint` writes a random one, spare rows and all.
"""

import json
import math
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

Array = NDArray[np.float64]

SETTINGS = {
    "interpretable": True,
    "vocab_size": 41,
    "n_layers": 2,
    "n_head": 6,
    "n_embd": 60,
    "block_size": 24,
    "n_kv_heads": 3,
    "diff_block_size": 5,
    "norm_order": "post",
    "norm_eps": 1e-5,
    "use_qk_norm": True,
    "use_rope": True,
    "rope_base": 5e5,
    "mlp_ratio": 2,
    "intermediate_size": None,
    "clip_qkv": 10.0,
    "weight_sharing": True,
    "n_concepts": 21,
    "n_unknown_concepts": 63,
    "concept_dim": 60,
    "topk_known": 4,
    "topk_known_features": 4,
    "factorize_unknown": True,
    "factorize_rank": 17,
    "unknown_topk": 9,
    "apply_topk_to_unknown": True,
    "use_epsilon_correction": True,
    "pad_multiple": 16,
    "pad_token_id": 33,
    "bos_token_id": 34,
    "eos_token_id": 32,
    "endofchunk_token_id": 35,
    "mask_token_id": 36,
}


def shapes(settings: dict) -> dict[str, tuple[int, ...]]:
    """Every tensor of a checkpoint."""
    width, prefix = settings["n_embd"], "transformer." if settings["interpretable"] else ""
    head = width // settings["n_head"]
    n_kv_heads = settings["n_kv_heads"] or settings["n_head"]
    inner = settings["intermediate_size"] or settings["mlp_ratio"] * width
    found = {f"{prefix}tok_emb.weight": (settings["vocab_size"], width)}
    if not settings["weight_sharing"]:
        found[f"{prefix}lm_head.weight"] = (settings["vocab_size"], width)
    for layer in range(settings["n_layers"]):
        block = f"{prefix}blocks.{layer}."
        found[f"{block}ln_1.weight"] = found[f"{block}ln_2.weight"] = (width,)
        found[f"{block}attn.c_attn.weight"] = (width + 2 * n_kv_heads * head, width)
        found[f"{block}attn.c_proj.weight"] = (width, width)
        if settings["use_qk_norm"]:
            found[f"{block}attn.q_norm.weight"] = found[f"{block}attn.k_norm.weight"] = (head,)
        found[f"{block}mlp.c_fc.weight"] = (2 * inner, width)
        found[f"{block}mlp.c_proj.weight"] = (width, inner)
    found[f"{prefix}ln_f.weight"] = (width,)
    if not settings["interpretable"]:
        return found
    multiple, rank = settings["pad_multiple"], settings["factorize_rank"]
    n_known = math.ceil(settings["n_concepts"] / multiple) * multiple
    n_unknown = math.ceil(settings["n_unknown_concepts"] / multiple) * multiple
    found["known_head.concept_embedding.weight"] = (n_known, width)
    found["known_head.concept_predictor.weight"] = (n_known, width)
    if settings["factorize_unknown"]:
        found["unknown_head.embedding_coef.weight"] = (n_unknown, rank)
        found["unknown_head.embedding_basis.weight"] = (width, rank)
        found["unknown_head.predictor_down.weight"] = (rank, width)
        found["unknown_head.predictor_up.weight"] = (n_unknown, rank)
    else:
        found["unknown_head.concept_embedding.weight"] = (n_unknown, width)
        found["unknown_head.concept_predictor.weight"] = (n_unknown, width)
    return found


def checkpoint(folder: Path, settings: dict, seed: int = 0) -> dict[str, torch.Tensor]:
    """Write a random checkpoint in the flat form; norms near 1, everything else around 0."""
    draw = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes(settings).items():
        drawn = torch.randn(shape, generator=draw)
        weights[name] = 1.0 + 0.1 * drawn if len(shape) == 1 else 1.5 * drawn / shape[1] ** 0.5
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    return weights


def forward(settings: dict, weights: dict[str, torch.Tensor], ids: Array) -> dict[str, Array]:
    """Outputs for one sequence of ids, by the names of `expected.safetensors`."""
    tensors = {name: tensor.double().numpy() for name, tensor in weights.items()}
    prefix = "transformer." if settings["interpretable"] else ""
    embedding = tensors[f"{prefix}tok_emb.weight"]
    head = embedding if settings["weight_sharing"] else tensors[f"{prefix}lm_head.weight"]
    state = embedding[ids]
    for layer in range(settings["n_layers"]):
        own = f"{prefix}blocks.{layer}."
        block = {name.removeprefix(own): tensors[name] for name in tensors if name.startswith(own)}
        first, second = block["ln_1.weight"], block["ln_2.weight"]
        eps = settings["norm_eps"]
        if settings["norm_order"] == "pre":
            state = state + _attention(settings, block, _norm(state, first, eps))
            state = state + _mlp(block, _norm(state, second, eps))
        else:
            state = state + _norm(_attention(settings, block, state), first, eps)
            state = state + _norm(_mlp(block, state), second, eps)
    hidden = _norm(state, tensors[f"{prefix}ln_f.weight"], settings["norm_eps"])
    if not settings["interpretable"]:
        return {"hidden": hidden, "logits": hidden @ head.T}
    known, unknown = _known(settings, tensors, hidden), _unknown(settings, tensors, hidden)
    composed = hidden if settings["use_epsilon_correction"] else known + unknown
    return {
        "hidden": hidden,
        "known_features": known,
        "unknown_features": unknown,
        "composed": composed,
        "logits": composed @ head.T,
    }


def _norm(state: Array, weight: Array, eps: float) -> Array:
    return state / np.sqrt((state**2).mean(-1, keepdims=True) + eps) * weight


def _mlp(block: dict[str, Array], state: Array) -> Array:
    up, gate = np.split(state @ block["mlp.c_fc.weight"].T, 2, axis=-1)
    return (up * gate / (1.0 + np.exp(-gate))) @ block["mlp.c_proj.weight"].T


def _attention(settings: dict, block: dict[str, Array], state: Array) -> Array:
    width, n_heads = settings["n_embd"], settings["n_head"]
    n_kv_heads, size = settings["n_kv_heads"] or n_heads, width // n_heads
    fused = state @ block["attn.c_attn.weight"].T
    if settings["clip_qkv"] is not None:
        fused = np.clip(fused, -settings["clip_qkv"], settings["clip_qkv"])
    query, key, value = np.split(fused, [width, width + n_kv_heads * size], axis=1)
    mixed = np.zeros_like(query)
    for n in range(n_heads):
        own = slice(n * size, (n + 1) * size)
        group = n // (n_heads // n_kv_heads)
        shared = slice(group * size, (group + 1) * size)
        q, k = query[:, own], key[:, shared]
        if settings["use_qk_norm"]:
            q = _norm(q, block["attn.q_norm.weight"], settings["norm_eps"])
            k = _norm(k, block["attn.k_norm.weight"], settings["norm_eps"])
        if settings["use_rope"]:
            q, k = _turned(q, settings["rope_base"]), _turned(k, settings["rope_base"])
        for at in range(len(state)):
            last = (at // settings["diff_block_size"] + 1) * settings["diff_block_size"]
            scores = k[:last] @ q[at] / math.sqrt(size)
            shares = np.exp(scores - scores.max())
            mixed[at, own] = shares @ value[:last, shared] / shares.sum()
    return mixed @ block["attn.c_proj.weight"].T


def _turned(vectors: Array, base: float) -> Array:
    turned, half = np.zeros_like(vectors), vectors.shape[1] // 2
    for at, vector in enumerate(vectors):
        for pair in range(half):
            angle = at * base ** (-2.0 * pair / vectors.shape[1])
            x, y = vector[pair], vector[pair + half]
            turned[at, pair] = x * math.cos(angle) - y * math.sin(angle)
            turned[at, pair + half] = y * math.cos(angle) + x * math.sin(angle)
    return turned


def _known(settings: dict, tensors: dict[str, Array], hidden: Array) -> Array:
    n = settings["n_concepts"]
    kept = settings["topk_known"] and (settings["topk_known_features"] or settings["topk_known"])
    embedding = tensors["known_head.concept_embedding.weight"][:n]
    predictor = tensors["known_head.concept_predictor.weight"][:n]
    return _summed(hidden @ predictor.T, embedding, kept)


def _unknown(settings: dict, tensors: dict[str, Array], hidden: Array) -> Array:
    n = settings["n_unknown_concepts"]
    kept = settings["unknown_topk"] if settings["apply_topk_to_unknown"] else None
    if settings["factorize_unknown"]:
        basis = tensors["unknown_head.embedding_basis.weight"]
        embedding = tensors["unknown_head.embedding_coef.weight"] @ basis.T
        down = tensors["unknown_head.predictor_down.weight"]
        predictor = tensors["unknown_head.predictor_up.weight"] @ down
    else:
        embedding = tensors["unknown_head.concept_embedding.weight"]
        predictor = tensors["unknown_head.concept_predictor.weight"]
    return _summed(hidden @ predictor[:n].T, embedding[:n], kept)


def _summed(logits: Array, embedding: Array, kept: int | None) -> Array:
    found = np.zeros((len(logits), embedding.shape[1]))
    for at, row in enumerate(logits):
        strongest = np.argsort(-row, kind="stable")[: kept or len(row)]
        for concept in strongest:
            cut = min(15.0, max(-15.0, row[concept]))
            found[at] += embedding[concept] / (1.0 + math.exp(-cut))
    return found
