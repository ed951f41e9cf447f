"""What an optimisation reads, opened by its config: the stage's tokens, and its batches.

    with opened(tokens, data, cache) as stream:                  in a folder, or in S3 by ranges
        with fed(job, stream, rank=…, world=…) as batches:       shuffled, mixed, streamed, ahead

Tokens in S3 are never copied whole: a batch asks for its windows' ranges, and the next batches are
asked for while a step runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from components import contracts, loader, store
from components.ahead import Ahead
from components.contracts import ContractError
from components.data_config import DataConfig, PackedSource, StreamedSource
from components.job import Job
from components.loader import Batches, Loader, LoaderError, Source
from components.manifests import REMOTE
from components.ranged import Place
from components.recent import Recent
from components.tokens import TokenStream

CACHE_FOLDER = "cache"
"""Below a job's folder: small whole files of artifacts in S3."""


@contextmanager
def opened(tokens: Path, data: DataConfig, cache: Path) -> Iterator[TokenStream]:
    """The stage's tokens. Raises ContractError where others lie at `data.location`."""
    manifest = contracts.manifest_of(tokens)
    location = _location(tokens, data)
    if location == str(tokens):
        yield TokenStream(tokens)
        return
    with _read_at(location, manifest.digest, data, cache) as stream:
        yield stream


@contextmanager
def fed(job: Job, stream: TokenStream, *, rank: int, world: int) -> Iterator[Batches]:
    """This rank's batches, as `job.data` says. `stream` is the stage's tokens."""
    with ExitStack() as held:
        if job.data.sources:
            batches = _mixture(job, stream, held, rank=rank, world=world)
        else:
            batches = loader.of_stream(
                stream, job.domain_weights, length=job.training.length,
                batch_sequences=job.training.batch_sequences, seed=job.training.seed,
                rank=rank, world=world,
            )  # fmt: skip
        if job.data.ahead and _has_to_wait(job):
            batches = Ahead(batches, n_ahead=job.data.ahead, n_steps=job.training.n_steps)
        held.callback(batches.close)
        yield batches


def _mixture(job: Job, stream: TokenStream, held: ExitStack, *, rank: int, world: int) -> Batches:
    """Batches by weight; what is opened for them is closed with `held`."""
    data, training = job.data, job.training
    cache = Path(job.folder) / CACHE_FOLDER
    packed, datasets = list[Source](), dict[str, StreamedSource]()
    for name, source in data.sources.items():
        if isinstance(source, StreamedSource):
            datasets[name] = source
        else:
            packed.append(Source(name, _packed(source, stream, data, cache, held)))
    loader.check_tokenizers([Source("the stage's tokens", stream), *packed])
    _check_library(stream, packed)
    if not datasets:
        return Loader(
            packed, data.weights, length=training.length, seed=training.seed,
            batch_sequences=training.batch_sequences, rank=rank, world=world,
        )  # fmt: skip
    # Imported here: `datasets` takes seconds, and most runs have no stream.
    from components.streaming import streamed

    return streamed(
        datasets, data.weights, stream.tokenizer, packed=packed, lanes=data.lanes,
        length=training.length, seed=training.seed, batch_sequences=training.batch_sequences,
        rank=rank, world=world,
    )  # fmt: skip


def _check_library(stream: TokenStream, packed: Sequence[Source]) -> None:
    """Concept ids are rows of a library: those of another would teach other concepts."""
    for source in packed:
        if source.stream.library_digest != stream.library_digest:
            raise LoaderError(
                f"the source {source.name!r} is labelled with the library "
                f"{source.stream.library_digest[:12]}…, the stage's tokens with "
                f"{stream.library_digest[:12]}…: their concept ids mean "
                f"different concepts. Pack it with labels of this run's library"
            )


def _packed(
    source: PackedSource, stream: TokenStream, data: DataConfig, cache: Path, held: ExitStack
) -> TokenStream:
    if not source.location:
        return stream
    return held.enter_context(_read_at(source.location, source.digest, data, cache))


@contextmanager
def _read_at(location: str, digest: str, data: DataConfig, cache: Path) -> Iterator[TokenStream]:
    """The artifact with this digest, by ranges; the last ones that S3 sent stay in memory."""
    place: Place = store.place(location, data.storage, cache)
    if location.startswith(REMOTE) and data.recent_bytes:
        place = Recent(place, data.recent_bytes)
    try:
        stream = TokenStream(place)
        if stream.digest != digest:
            raise ContractError(
                f"{location} holds tokens with digest {stream.digest[:12]}…, but this run is to "
                f"read {digest[:12]}…: another artifact lies there. Send the right one "
                f"(components.store.send), or name its location and digest"
            )
        yield stream
    finally:
        place.close()


def _has_to_wait(job: Job) -> bool:
    """Whether a batch comes from S3, or is tokenised when it is asked for."""
    packed = [one for one in job.data.sources.values() if isinstance(one, PackedSource)]
    locations = [one.location for one in packed] + [_location(Path(job.tokens), job.data)]
    return job.data.is_streamed or any(one.startswith(REMOTE) for one in locations)


def _location(tokens: Path, data: DataConfig) -> str:
    """Where the files of the stage's tokens are read; its own folder unless something is said."""
    said = data.location or contracts.manifest_of(tokens).location
    return str(tokens) if said == "." else said
