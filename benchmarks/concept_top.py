"""The strongest concepts of each token, in two levels and in rank space, against a running merge.

    known      512 tokens, 33,732 concepts, the 32 strongest; forward, and forward with backward
    unknown    256 tokens, 101,196 concepts of rank 256, the 128 strongest; forward
    network    512 tokens through 4 layers and both heads; forward

at width 256. The reference goes through the concepts in blocks of 4,096, keeps a running list and
gathers the rows of the kept concepts, as the released package does; the known concepts are also
raced against all logits at once, which is the formula as it is written.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.measure import Action, Contest, memory, race
from benchmarks.straightforward import dense_top, gathered_sum, merged_top
from model.bottleneck import ConceptBottleneck
from model.config import BackboneConfig, BottleneckConfig
from model.topk import TopConcepts
from model.transformer import Transformer

WIDTH, N_TOKENS = 256, 512
CONFIG = BottleneckConfig(
    n_known=33_732, n_unknown=101_196, rank=256, top_k=32, top_k_unknown=128, known_bias=False
)


def contests() -> Iterator[Contest]:
    """Known forward, twice; with gradients and memory; unknown forward; and a whole network."""
    heads, hidden_ND = _heads(), _hidden()
    yield _known(heads, hidden_ND)
    yield _known_at_once(heads, hidden_ND)
    yield _known_with_gradients()
    yield _unknown(heads, hidden_ND[:256])
    yield _network(heads)


def contestants(n_tokens: int = 4 * N_TOKENS) -> dict[str, Action]:
    """Known concepts forward and backward, either way; memory is compared at 2,048 tokens."""
    heads, hidden_ND = _heads(), _hidden(n_tokens).requires_grad_()
    known = heads.known

    def merged() -> tuple[Tensor, ...]:
        top = merged_top(hidden_ND, known.predictor_KD, known.top_k)
        return _gradients(gathered_sum(known.embedding_KD, top), heads, hidden_ND)

    def ours() -> tuple[Tensor, ...]:
        return _gradients(known.combine(known.top(hidden_ND)), heads, hidden_ND)

    return {"merged": merged, "ours": ours}


def _gradients(sum_ND: Tensor, heads: ConceptBottleneck, hidden_ND: Tensor) -> tuple[Tensor, ...]:
    inputs = (hidden_ND, heads.known.predictor_KD, heads.known.embedding_KD)
    return torch.autograd.grad(sum_ND.square().sum(), inputs)


@torch.no_grad()
def _known(heads: ConceptBottleneck, hidden_ND: Tensor) -> Contest:
    known = heads.known

    def reference() -> TopConcepts:
        top = merged_top(hidden_ND, known.predictor_KD, known.top_k)
        gathered_sum(known.embedding_KD, top)
        return top

    def ours() -> TopConcepts:
        top = known.top(hidden_ND)
        known.combine(top)
        return top

    return race(
        f"known top-32 of {N_TOKENS} tokens", torch.no_grad()(reference), torch.no_grad()(ours),
        agreement=_agreement(reference(), ours()), repeats=5, target=1.4,
        products=lambda: hidden_ND @ known.predictor_KD.detach().T,
    )  # fmt: skip


@torch.no_grad()
def _known_at_once(heads: ConceptBottleneck, hidden_ND: Tensor) -> Contest:
    known = heads.known

    def reference() -> TopConcepts:
        return dense_top(hidden_ND, known.predictor_KD, known.top_k)

    def ours() -> TopConcepts:
        return known.top(hidden_ND)

    return race(
        "… found in all logits at once", torch.no_grad()(reference), torch.no_grad()(ours),
        agreement=_agreement(reference(), ours()), repeats=5,
    )  # fmt: skip


def _known_with_gradients() -> Contest:
    both = contestants(N_TOKENS)
    off = max(
        float((one - other).norm() / one.norm())
        for one, other in zip(both["merged"](), both["ours"](), strict=True)
    )
    return race(
        "… with gradients", both["merged"], both["ours"],
        agreement=f"gradients within {off:.0e}", repeats=3,
        memory=memory("benchmarks.concept_top", "merged", "ours"),
    )  # fmt: skip


def _unknown(heads: ConceptBottleneck, hidden_ND: Tensor) -> Contest:
    head = heads.unknown
    tables = head.tables()

    @torch.no_grad()
    def reference() -> TopConcepts:
        top = merged_top(head.query(hidden_ND), tables.predictor_KQ, head.top_k)
        head.widen(gathered_sum(tables.embedding_KE, top))
        return top

    @torch.no_grad()
    def ours() -> TopConcepts:
        top = head.top(hidden_ND)
        head.combine(top)
        return top

    thin_NR = head.query(hidden_ND).detach()
    return race(
        f"unknown top-128 of {len(hidden_ND)} tokens", reference, ours,
        agreement=_agreement(reference(), ours()), repeats=5, target=1.7,
        products=lambda: thin_NR @ tables.predictor_KQ.detach().T,
    )  # fmt: skip


def _network(heads: ConceptBottleneck) -> Contest:
    config = BackboneConfig(
        vocab_size=8, width=WIDTH, n_layers=4, n_heads=8, n_kv_heads=4, mlp_width=1_024,
        max_length=256, block=64,
    )  # fmt: skip
    backbone = Transformer(config).eval()
    embedded_BTD = torch.randn(2, 256, WIDTH, generator=torch.Generator().manual_seed(2))

    @torch.no_grad()
    def reference() -> Tensor:
        hidden_ND = backbone(embedded_BTD)[0].flatten(0, 1)
        found = [
            head.widen(
                gathered_sum(
                    head.tables().embedding_KE,
                    merged_top(head.query(hidden_ND), head.tables().predictor_KQ, head.top_k),
                )
            )
            for head in (heads.known, heads.unknown)
        ]
        return torch.cat(found)

    @torch.no_grad()
    def ours() -> Tensor:
        parts = heads(backbone(embedded_BTD)[0])
        return torch.cat([parts.known_BTD.flatten(0, 1), parts.unknown_BTD.flatten(0, 1)])

    expected = reference()
    off = float((ours() - expected).norm() / expected.norm())
    return race(
        "backbone and both heads, 512 tokens", reference, ours,
        agreement=f"parts within {off:.0e}", repeats=3, target=1.7,
    )  # fmt: skip


def _agreement(expected: TopConcepts, found: TopConcepts) -> str:
    same = (expected.ids.sort().values == found.ids.sort().values).all(dim=1)
    off = float((expected.activations - found.activations).abs().max())
    return f"{int(same.sum())} of {len(same)} sets equal, activations within {off:.0e}"


def _heads() -> ConceptBottleneck:
    heads = ConceptBottleneck(CONFIG, WIDTH)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in heads.parameters():
            parameter.normal_(0.0, 0.05, generator=draw)
    return heads


def _hidden(n_tokens: int = N_TOKENS) -> Tensor:
    return torch.randn(n_tokens, WIDTH, generator=torch.Generator().manual_seed(1))
