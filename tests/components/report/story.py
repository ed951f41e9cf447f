"""A small made-up run: one artifact of every kind the report reads, through the contracts."""

import json
import struct
import zlib
from pathlib import Path

import numpy as np

from components import contracts
from components.library import freeze
from tests.components.written_labels import write_labels

MARKUP = '<script>alert("x")</script>'
"""Text that must never reach the page as markup: it is put wherever text comes from data."""

NAMES = (
    "Sea voyages",
    "Mathematical proof",
    f"Irony {MARKUP}",
    "Import statements",
    "Cell biology",
)
FLOPS = 2.0e12


def write(folder: Path) -> dict[str, Path]:
    """Folders by parameter name of `report`."""
    makers = {
        "documents": _documents, "concepts": _concepts, "labels": _labels, "curve": _curve,
        "midtraining_curve": _midtraining, "scores": _scores, "fit": _fit,
        "attributions": _attributions, "steering": _steering, "version": _version,
        "judged": _judged,
    }  # fmt: skip
    paths = {}
    for name, make in makers.items():
        paths[name] = folder / name
        paths[name].mkdir(parents=True)
        make(paths[name])
    return paths


def write_finetuning(folder: Path) -> Path:
    """Scores before and after, as fine-tuning writes them."""
    folder.mkdir(parents=True)
    score = {"n": 7, "n_of": "answers", "unit": "nats per token", "condition": "capability"}
    values = {"nll_before": 5.125, "nll_after": 3.5, "nll_change": -1.625}
    scores = {
        name: {**score, "value": value, "low": value - 0.25, "high": value + 0.25, "note": MARKUP}
        for name, value in values.items()
    }
    (folder / "scores.json").write_text(json.dumps(scores))
    contracts.seal(folder, contracts.SCORES)
    return folder


def _judged(folder: Path) -> None:
    score = {"n": 9, "n_of": "documents", "condition": "interpretation", "note": MARKUP}
    values = {"judge_auc": 0.875, "judge_calibration_error": 0.03125}
    for number, name in enumerate(("tags", "concepts", "labels"), start=1):
        for suffix, value in (("", 0.5), ("_shuffled", 0.125), ("_acceptable", 0.75)):
            values[f"judged_{name}{suffix}"] = value + number / 64
    scores = {
        name: {**score, "value": value, "low": value - 0.25, "high": value + 0.25, "unit": "share"}
        for name, value in values.items()
    }
    (folder / "scores.json").write_text(json.dumps(scores))
    contracts.seal(folder, contracts.SCORES)


def _documents(folder: Path) -> None:
    domains = ("code", "literature", "mathematics")
    rows = [
        {
            "doc_id": f"d{i}", "source": f"{domains[i % 3]}-source", "source_version": "1.0",
            "locator": str(i), "domain": domains[i % 3], "licence": "CC0-1.0",
            "title": f"Title {i} {MARKUP}", "split": ("train", "valid", "test")[i % 7 % 3],
            "text": f"Text {i} " * (20 + 9 * i),
        }
        for i in range(21)
    ]  # fmt: skip
    contracts.write(rows, folder, contracts.DOCUMENTS)


def _concepts(folder: Path) -> None:
    rows = [
        {
            "concept_id": i, "name": name, "description": f"Text about {name.lower()}.",
            "kind": "content", "parent": ("Literature", "Science")[i % 2],
            "taxonomy": ("Literature > Travel", "Science > Mathematics")[i % 2],
            "prevalence": 0.02 + i / 50, "n_chunks": 4 + i, "coherence": 0.8 - i / 50,
            "members": [name.lower()],
        }
        for i, name in enumerate(NAMES)
    ]  # fmt: skip
    facts = {
        "encoder": "hashing", "encoder_digest": "e", "n_concepts": len(NAMES), "n_tags": 31,
        "n_tagged_chunks": 17, "n_clusters": 9,
        "coherence_curve": [{"k": k, "coherence": 0.4 + k / 50} for k in (6, 9, 12)],
        "history": [
            {"action": "drop", "names": ["rigging", MARKUP],
             "reason": "on 1 chunks, fewer than needed"},
            {"action": "drop", "names": ["spars"], "reason": "on 2 chunks, fewer than needed"},
            {"action": "merge", "names": ["Proof", "Proofs", NAMES[1]],
             "reason": f"cards at least 0.85 alike; now {NAMES[1]}"},
        ],
    }  # fmt: skip
    angle_K = 0.3 * np.arange(len(NAMES))
    centroids_KD = np.stack([np.cos(angle_K), np.sin(angle_K)], axis=1).astype(np.float32)
    freeze(rows, centroids_KD, facts, folder)


def _labels(folder: Path) -> None:
    rows = [
        {"chunk_id": chunk, "concept_id": concept, "score": 0.75}
        for chunk in range(30)
        for concept in range(len(NAMES))
        if (chunk * (concept + 2)) % 5 < 2
    ]
    write_labels(rows, folder)


def _curve(folder: Path, first: float = 7.0, last: float = 4.6, name: str = "train") -> None:
    rows = []
    for i in range(9):
        nll = last + (first - last) * 0.55**i
        measured = i % 4 == 0
        rows.append(
            {
                "step": 10 * (i + 1), "tokens": 1000 * (i + 1), "flops": FLOPS / 9 * (i + 1),
                "lr": 1e-3, "nll_nats": nll, "valid_nll_nats": nll + 0.1 if measured else None,
                "concept_loss": 0.4 - 0.02 * i if measured else None,
                "independence_loss": 0.1 / (i + 1) if measured else None,
                "reconstruction_loss": 0.3 / (i + 1) if measured else None,
                "concept_contribution": 0.4 + 0.04 * i if measured else None,
            }
        )  # fmt: skip
    run = {
        "name": name, "family": "cdlm_concept", "seed": 7, "n_parameters": 3_000_000,
        "n_backbone_parameters": 2_000_000, "n_tokens": 9000, "flops": FLOPS, "budget_flops": FLOPS,
        "final": {}, "some_other_fact": "is ignored",
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))
    contracts.write(rows, folder, contracts.CURVE)


def _midtraining(folder: Path) -> None:
    _curve(folder, first=4.9, last=4.4, name="midtrain")


def _scores(folder: Path) -> None:
    named = {
        "nll_nats_per_token_rate_0.5": (4.5, "nats per token", "capability"),
        "unigram_nats_per_token_rate_0.5": (5.6, "nats per token", "capability"),
        "gain_over_unigram_nats_per_token_rate_0.5": (1.1, "nats per token", "capability"),
        "bits_per_byte": (2.1, "bits per byte", "capability"),
        "bits_per_byte_code": (1.7, "bits per byte", "capability"),
        "bits_per_byte_literature": (2.4, "bits per byte", "capability"),
        "concept_contribution": (0.72, "share of the absolute logit", "coverage"),
        "cost_of_residual_zero_nats_per_token_rate_0.5": (0.4, "nats per token", "coverage"),
        "concept_auroc_macro": (0.83, "area", "interpretation"),
        "a_score_of_a_later_kind": (1.0, "unit", "robustness"),
    }
    scores = {
        name: {"value": value, "n": 40, "n_of": "documents", "low": value * 0.97,
               "high": value * 1.03, "unit": unit, "condition": condition, "note": MARKUP}
        for name, (value, unit, condition) in named.items()
    }  # fmt: skip
    (folder / "scores.json").write_text(json.dumps(scores))
    contracts.seal(folder, contracts.SCORES)


def _fit(folder: Path) -> None:
    estimate = {"value": 0.5, "low": None, "high": None, "unit": "exponent"}
    family = {
        "n_runs": 6, "estimator": "fixed_rate_0.5", "exponents": {"parameters": estimate},
        "extrapolation": [{"budget_flops": 1e13, "factor": 3.0, "optimal_parameters": estimate,
                           "loss": {**estimate, "low": 4.0, "high": 4.4, "value": 4.2}}],
        "caveats": ["3 sizes: a vertex has no interval"],
    }  # fmt: skip
    fit = {
        "form": "L(N, D)", "n_runs": 6, "interval": "95%", "refused_beyond_factor": 30.0,
        "families": {"cdlm": family},
    }  # fmt: skip
    (folder / "fit.json").write_text(json.dumps(fit))
    (folder / "points.csv").write_text("name,n_tokens,flops\na,1000,1e11\nb,3000,3e11\n")
    (folder / "curve.png").write_bytes(_png())
    contracts.seal(folder, contracts.SCALING_FIT)


def _png() -> bytes:
    """One grey pixel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\x00\x80")
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _attributions(folder: Path) -> None:
    pieces = ["<|bos|>", "The", " ship", " sailed", f" {MARKUP}"]
    written = [" west", " until", " the", " storm"]
    shares = {"known": 0.55, "unknown": 0.25, "residual": 0.2, "known_signed": 0.5}
    prompts = [
        {
            "prompt_id": prompt_id, "shares": shares, "prompt_pieces": pieces,
            "origin": {"split": "test", "title": f"Voyage {prompt_id}", "domain": "literature"},
            "prompt_weights": [0.0, 0.2, 0.6, -0.3, 0.1],
            "concepts": [{"kind": ("known", "unknown")[i % 2], "concept_id": i, "name": name,
                          "share": 0.2 / (i + 1) * (-1) ** i, "n_tokens": 4 - i % 3}
                         for i, name in enumerate(NAMES)],
            "tokens": [{"position": 5 + i, "token": token, "logit": 3.0, "confidence": 0.5,
                        "order": i} for i, token in enumerate(written)],
            "sources": [{"chunk_id": 3, "chunk_index": 0, "rank": 0, "cosine": 0.81,
                         "random_below_share": 0.99, "text": f"They sailed. {MARKUP}",
                         "title": "A log", "source": "literature-source", "licence": "CC0-1.0"}],
        }
        for prompt_id in range(2)
    ]  # fmt: skip
    summary = {
        "n_prompts": 2, "n_tokens": 8, "prompts": prompts,
        "concepts": _concepts_hold(),
        "inputs": _inputs(),
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))
    rows = [
        {"prompt_id": prompt_id, "chunk_index": 0, "position": 5 + i, "token": token,
         "kind": "concept", "ref": ref, "name": "n", "weight": weight, "rank": rank}
        for prompt_id in range(2)
        for i, token in enumerate(written)
        for rank, (ref, weight) in enumerate([(f"known:{i}", 1.0 + i), ("residual", 0.3)])
    ]  # fmt: skip
    contracts.write(rows, folder, contracts.ATTRIBUTIONS)


def _said(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n_groups": 2}


def _concepts_hold() -> dict[str, object]:
    compared = {"n_pairs": 12, "rank_correlation": _said(0.71), "mean_error": _said(0.3),
                "mean_observed": _said(0.5)}  # fmt: skip
    exact = {"n_pairs": 9, "n_pairs_not_kept": 2, "rank_correlation": 1.0,
             "largest_error_logits": 4e-6, "mean_observed_logits": 0.25}  # fmt: skip
    both = {"known": compared, "unknown": compared}
    parts = ("known", "unknown", "residual")
    return {
        "largest_sum_error_logits": 3e-6, "known_only_share": _said(0.55),
        "concept_by_concept": {f"{part}{sign}": _said(0.25) for part in parts
                               for sign in ("", "_signed")},
        "unknown_names": {"n_tried": 7, "n_named": 3, "least_auc": 0.75},
        "named_unknown_share": _said(0.125),
        "removal": {
            "at_the_bottleneck": {"known": exact, "unknown": exact}, "log_probability": both,
            "upstream": [{"after_layer": 3, **both}],
        },
    }  # fmt: skip


def _inputs() -> dict[str, object]:
    said = _said
    curve = [
        {"n_inputs": n, "deletion_logits": said(n), "deletion_random_logits": said(0.1),
         "insertion_logits": said(n - 0.5), "insertion_random_logits": said(0.2)}
        for n in (1, 3)
    ]  # fmt: skip
    agreement = {"rank_correlation": said(0.83), "mean_error_logits": said(0.2),
                 "mean_observed_logits": said(0.4), "slope": said(0.97)}  # fmt: skip
    return {
        "n_targets": 8, "mean_evaluations": 23.5, "n_not_reached": 1, "tolerance": 0.02,
        "completeness_error": 0.012, "completeness_interval": said(0.012),
        "masking": {
            "n_targets": 4, "random_orders": 5, "curve": curve, "deletion_ratio_at": 3,
            "deletion_ratio": said(30.0),
            "agreement": {"together": agreement, "in_parts": agreement},
        },
    }  # fmt: skip


STEERED = (
    ("none", 0.0), ("prompting", 0.0), ("injection", 0.0), ("injection", 4.0),
    ("injection_mask", -4.0),
)  # fmt: skip
MEASURES = (
    "concept_score", "word_score", "quality", "harmonic_mean", "nll_nats", "distinct_2",
    "repetition", "presence", "similarity",
)  # fmt: skip


def _steering(folder: Path) -> None:
    rows = [
        {
            "concept_id": concept, "name": NAMES[concept], "prevalence": 0.1 - concept / 50,
            "prompt_id": prompt, "about": prompt == 1, "steering_trained": trained, "arm": arm,
            "strength": strength, "concept_score": 0.5 + 0.1 * strength + concept / 50,
            "word_score": 0.4, "quality": 1 - abs(strength) / 9, "harmonic_mean": 0.5,
            "nll_nats": 4.0 + abs(strength) / 3, "distinct_2": 0.9, "repetition": 0.2,
            "judged_concept": float("nan"), "judged_quality": float("nan"),
            "text": f"{arm} {strength} at sea. {MARKUP}",
        }
        for concept in range(3)
        for prompt in range(2)
        for arm, strength in STEERED
        for trained in (True, False)
    ]  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(_steering_summary()))
    contracts.write(rows, folder, contracts.STEERING_REPORT)


def _steering_summary() -> dict[str, object]:
    def mean(value: float) -> dict[str, float]:
        return {"value": value, "low": -1.0, "high": 1.0, "n_groups": 3}

    arms = [
        {
            "arm": arm, "strength": strength, "prompts": kind, "steering_trained": trained, "n": 6,
            **{f"{name}{suffix}": mean(strength / 10)
               for name in MEASURES for suffix in ("", "_change")},
        }
        for arm, strength in STEERED
        for kind in ("all", "neutral", "about")
        for trained in (True, False)
    ]  # fmt: skip
    group = {
        "strength": 4.0, "n": 5,
        **{f"{name}{suffix}": mean(0.25)
           for name in MEASURES for suffix in ("_unsteered", "_steered", "_change")},
    }  # fmt: skip
    return {
        "n_concepts": 3, "n_prompts": 2, "n_new_tokens": 8, "strength_unit": "logits",
        "concept_score": "by the annotator", "n_strength_zero_equal_to_unsteered": 12,
        "silent": [
            {"strength": "any", "n_texts": 2, "concept_ids": [2], "share": 1 / 3,
             "share_by_chance": 0.5},
        ],
        "arms": arms,
        "comparisons": [
            {"arm": "injection", "strength": 4.0, "over": "prompting", "prompts": "neutral",
             "measure": "concept_score", "n": 6, **mean(0.3)},
        ],
        "before_after": [
            {"strength": 4.0, "n": 6, "before": mean(0.2), "after": mean(0.4),
             "change": mean(0.2)},
        ],
        "logit_shifts": [
            {"strength": 4.0, "n": 3, "rank_correlation": mean(0.8), "slope": mean(0.6),
             "top_logits": mean(2.5)},
        ],
        "safety": {**group, "members": [{"concept_id": 1, "name": NAMES[1]}]},
        "response": group,
        "concepts": [{"concept_id": i, "name": NAMES[i]} for i in range(3)],
    }  # fmt: skip


def _version(folder: Path) -> None:
    version = {"name": "clearstory", "alias": "candidate", "checkpoint_digest": "c", "scores": {}}
    (folder / "version.json").write_text(json.dumps(version))
    (folder / "card.md").write_text("# Card\n")
    contracts.seal(folder, contracts.MODEL_VERSION)
