"""Generate one text and explain each of its tokens (paper §6.1).

The last generated chunk is explained whether or not its end was generated. Tokens committed behind
a stop token are no part of the text, but the network saw them: they stay in the snapshots.

Shape suffixes: N token of the text, in reading order   k concept kept   D width   T position
"""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from components.attribution.config import AttributeConfig
from components.attribution.inputs import Masked, TracedInputs, mask_inputs, trace_inputs
from components.attribution.removals import Removals, remove_concepts
from components.attribution.similar import Chunk, similar_chunks
from components.prompts import Prompt
from components.retrieval import Retriever
from model import attribution
from model.attribution import ConceptAttribution
from model.language_model import LanguageModel
from model.sampling import generate
from model.tokenizer import Tokenizer
from model.trace import Trace


@dataclass(frozen=True)
class TracedText:
    """A prompt, what was generated, and the three explanations."""

    prompt_id: int
    prompt: Prompt
    trace: Trace
    commits_N: Tensor
    """Commits of the trace that are the text, in reading order."""

    concepts: ConceptAttribution
    removals: Removals
    inputs: list[TracedInputs]
    masked: Masked
    chunks: list[Chunk]

    @property
    def positions(self) -> list[int]:
        found: list[int] = self.trace.position_N[self.commits_N].tolist()
        return found

    @property
    def rows(self) -> list[slice]:
        """Tokens of each chunk."""
        first = [self.positions.index(chunk.positions[0]) for chunk in self.chunks]
        return [slice(*ends) for ends in pairwise([*first, len(self.positions)])]


@dataclass(frozen=True)
class Tracer:
    """Everything needed to explain a text."""

    lm: LanguageModel
    tokenizer: Tokenizer
    retriever: Retriever
    config: AttributeConfig

    def trace(self, prompt_id: int, prompt: Prompt) -> TracedText:
        """Continue a prompt to the end of a chunk and explain every token of it."""
        special = self.tokenizer.specials
        (trace,) = generate(
            self.lm,
            prompt.row,
            self.config.sampling,
            stop_ids=[special.end_of_chunk_id, special.end_of_turn_id],
            sample_ids=[prompt_id],
        )
        inside_N = (trace.position_N < trace.end).nonzero().squeeze(-1)
        commits_N = inside_N[trace.position_N[inside_N].argsort()]
        concepts = attribution.concept_attribution(
            self.lm,
            trace.state_ND[commits_N],
            trace.token_N[commits_N],
            trace.logit_N[commits_N],
        )
        inputs = trace_inputs(self.lm, trace, commits_N, self.config)
        return TracedText(
            prompt_id,
            prompt,
            trace,
            commits_N,
            concepts,
            remove_concepts(self.lm, trace, commits_N, concepts, prompt_id, self.config),
            inputs,
            mask_inputs(self.lm, trace, inputs, prompt_id, self.config),
            self._chunks(trace, commits_N),
        )

    def _chunks(self, trace: Trace, commits_N: Tensor) -> list[Chunk]:
        return similar_chunks(
            self.lm, self.tokenizer, self.retriever, trace, commits_N, self.config.top_sources
        )
