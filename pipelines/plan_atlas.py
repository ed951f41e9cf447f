"""What Atlas takes on a corpus before it runs: tokens, hours, money, bytes, stage by stage.

    plan(recipe, n_chunks=11e9, hardware="h100")  ->  AtlasPlan

The recipe says how many chunks are tagged, by which model, and how large the library is; rates say
what each costs, as ranges (`atlas_rates.json`). Accelerators encode; cores cluster and label.
"""

from dataclasses import dataclass

from components.endpoints import LocalModel, RemoteModel
from pipelines.atlas_rates import Encoder, Rates, encoder, rates
from pipelines.cost import Range
from pipelines.hardware import Device, device
from pipelines.recipe import LOCAL, Recipe

_HOUR = 3_600.0
_POINTS_A_CENTROID = 64
_KMEANS_STEPS = 20
_NOTHING = Range(0.0, 0.0)
_HALF, _INDEX = 2, 8
"""Bytes of a number of a vector, and of an id."""


@dataclass(frozen=True)
class StageCost:
    """One stage of Atlas."""

    name: str
    n: float
    """Things worked on."""

    unit: str
    prompt_tokens: Range
    answer_tokens: Range
    device_hours: Range
    core_hours: Range
    wall_hours: Range
    money: Range
    storage_bytes: Range


@dataclass(frozen=True)
class AtlasPlan:
    """Atlas with a recipe's numbers on a corpus of so many chunks."""

    recipe: str
    n_chunks: float
    hardware: str
    n_devices: int
    n_cores: int
    encoder: str
    language_model: str
    n_tagged_chunks: float
    n_unique_tags: Range
    n_clusters: int
    n_concepts: int
    stages: tuple[StageCost, ...]
    wall_hours: Range
    money: Range
    storage_bytes: Range
    currency: str


def plan(
    recipe: Recipe, *, n_chunks: float, hardware: str = "", encoder_name: str = "", ranks: int = 0
) -> AtlasPlan:
    """Price Atlas. Hardware, encoder and number of devices are the recipe's where none is named."""
    if n_chunks < 1:
        raise ValueError(f"a corpus of {n_chunks:g} chunks has nothing to label; try --chunks 11e9")
    count = _Count(
        recipe, float(n_chunks), hardware or recipe.hardware,
        encoder_name or recipe.embedding.encoder, ranks or recipe.training.ranks.ranks, rates(),
    )  # fmt: skip
    stages = (count.tag(), count.embed(), count.canonicalise(), count.annotate())
    wall, money, storage = _NOTHING, _NOTHING, _NOTHING
    for stage in stages:
        wall += stage.wall_hours
        money += stage.money
        storage += stage.storage_bytes
    return AtlasPlan(
        recipe=recipe.name, n_chunks=float(n_chunks), hardware=count.hardware,
        n_devices=count.n_devices, n_cores=count.n_cores, encoder=count.encoder_name,
        language_model=recipe.tagging.language_model.name, n_tagged_chunks=count.n_tagged,
        n_unique_tags=count.unique_tags, n_clusters=count.n_clusters,
        n_concepts=recipe.expected_concepts, stages=stages, wall_hours=wall, money=money,
        storage_bytes=storage, currency=count.device.currency,
    )  # fmt: skip


@dataclass(frozen=True)
class _Count:
    """What the stages' costs are counted from."""

    recipe: Recipe
    n_chunks: float
    hardware: str
    encoder_name: str
    n_devices: int
    rates: Rates

    @property
    def device(self) -> Device:
        return device(self.hardware)

    @property
    def encoder(self) -> Encoder:
        return encoder(self.encoder_name)

    @property
    def n_cores(self) -> int:
        if self.hardware == LOCAL:
            return self.n_devices
        return int(self.n_devices * self.rates.cores_per_device.low)

    @property
    def n_tagged(self) -> float:
        tagging = self.recipe.tagging
        return min(self.n_chunks, float(tagging.n_train + tagging.n_held_out))

    @property
    def unique_tags(self) -> Range:
        n_tags = _times(self.rates.tags_per_chunk.range, Range(self.n_tagged, self.n_tagged))
        return _times(n_tags, self.rates.unique_tags.range)

    @property
    def n_clusters(self) -> int:
        return max(self.recipe.library.sweep)

    def tag(self) -> StageCost:
        """A language model reads the sample."""
        prompts = self.rates.tag_prompt_tokens.range.times(self.n_tagged)
        answers = self.rates.tag_answer_tokens.range.times(self.n_tagged)
        if self.recipe.tagging.tagger != "language_model":
            prompts = answers = _NOTHING
        tag_bytes = self.rates.tags_per_chunk.range.times(self.n_tagged * _INDEX)
        return self._stage(
            "tag", self.n_tagged, "chunks", prompts=prompts, answers=answers, stored=tag_bytes
        )

    def embed(self) -> StageCost:
        """Every chunk becomes a vector of float16."""
        pieces = self.rates.pieces_per_chunk.range.times(self.n_chunks)
        n_bytes = self.n_chunks * self.encoder.width * _HALF
        chunk_bytes = self.rates.chunk_bytes.range.times(self.n_chunks)
        return self._stage(
            "embed", self.n_chunks, "chunks", devices=self._encoding(pieces),
            cores=self._table(self.n_chunks), stored=chunk_bytes + Range(n_bytes, n_bytes),
        )  # fmt: skip

    def canonicalise(self) -> StageCost:
        """Unique tags are encoded, clustered for each k of the sweep, and clusters named."""
        tags, width = self.unique_tags, self.encoder.width
        flops = _NOTHING
        for k in self.recipe.library.sweep:
            sample = Range(*(min(n, float(_POINTS_A_CENTROID * k)) for n in (tags.low, tags.high)))
            flops += sample.times(2.0 * k * width * _KMEANS_STEPS) + tags.times(2.0 * k * width)
        naming = self.recipe.library.naming
        told = self.rates.naming_tokens.range.times(float(self.n_clusters * naming.n_samples))
        answers = float(self.n_clusters * naming.n_samples * naming.max_name_tokens)
        asks = naming.namer == "language_model"
        return self._stage(
            "canonicalise", tags.high, "unique tags, at most",
            prompts=told if asks else _NOTHING,
            answers=Range(answers / 2, answers) if asks else _NOTHING,
            devices=self._encoding(_times(tags, self.rates.tag_pieces.range)),
            cores=self._table(tags.high)
            + _over(flops, self.rates.cluster_flops.range.times(_HOUR)),
            stored=tags.times(float(width * _HALF)),
        )  # fmt: skip

    def annotate(self) -> StageCost:
        """Every chunk is scored against every concept, on cores."""
        cells = self.n_chunks * self.recipe.expected_concepts
        labels = self.rates.labels_per_chunk.range.times(self.n_chunks)
        return self._stage(
            "annotate", self.n_chunks, "chunks",
            cores=_over(Range(cells, cells), self.rates.label_cells.range.times(_HOUR)),
            stored=_times(labels, self.rates.label_bytes.range),
        )  # fmt: skip

    def _encoding(self, pieces: Range) -> Range:
        """Device hours of the encoder's products; none where it is a table."""
        flops = pieces.times(2.0 * self.encoder.parameters)
        peak = self.rates.encoder_utilisation.range.times(self.device.peak_flops * _HOUR)
        return _over(flops, peak)

    def _table(self, n_texts: float) -> Range:
        """Core hours of a table; none where the encoder is a network."""
        if self.encoder.parameters:
            return _NOTHING
        return _over(Range(n_texts, n_texts), self.rates.static_chunks.range.times(_HOUR))

    def _stage(
        self, name: str, n: float, unit: str, *, prompts: Range = _NOTHING,
        answers: Range = _NOTHING, devices: Range = _NOTHING, cores: Range = _NOTHING,
        stored: Range = _NOTHING,
    ) -> StageCost:  # fmt: skip
        asked = _over(answers, self.rates.answer_rate.range.times(_HOUR * self._n_requests))
        # Cores beside accelerators are rented with them, so their hours are a card's share.
        core_price = self.device.price_per_hour * self.n_devices / self.n_cores
        money = devices.times(self.device.price_per_hour) + cores.times(core_price)
        return StageCost(
            name=name, n=n, unit=unit, prompt_tokens=prompts, answer_tokens=answers,
            device_hours=devices, core_hours=cores,
            wall_hours=(
                asked + devices.times(1 / self.n_devices) + cores.times(1 / self.n_cores)
            ),
            money=money + self._asking(prompts, answers), storage_bytes=stored,
        )  # fmt: skip

    @property
    def _n_requests(self) -> int:
        """Requests to the language model at once."""
        asked = self.recipe.tagging.language_model
        return asked.n_workers if isinstance(asked, LocalModel) else asked.n_concurrent

    def _asking(self, prompts: Range, answers: Range) -> Range:
        """Money for tokens, by the recipe's price, else by the rates'."""
        asked = self.recipe.tagging.language_model
        if isinstance(asked, LocalModel):
            return _NOTHING
        prompt_price, answer_price = self._prices(asked)
        paid = _times(prompts, prompt_price) + _times(answers, answer_price)
        return paid.times(1e-6)

    def _prices(self, asked: RemoteModel) -> tuple[Range, Range]:
        """USD a million tokens of prompts and of answers."""
        prompts, answers = (
            asked.usd_per_million_prompt_tokens, asked.usd_per_million_completion_tokens
        )  # fmt: skip
        if prompts or answers:
            return Range(prompts, prompts), Range(answers, answers)
        return self.rates.prompt_price.range, self.rates.answer_price.range


def _times(one: Range, other: Range) -> Range:
    return Range(one.low * other.low, one.high * other.high)


def _over(amount: Range, rate: Range) -> Range:
    """Time for an amount: the least at the highest rate."""
    return Range(amount.low / rate.high, amount.high / rate.low)
