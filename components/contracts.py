"""What flows between stages: every artifact's name, version, columns and files. Read this first.

A folder is an artifact when it holds a `manifest.json` (`components/manifests.py`), written last.

    write, write_batches, seal     make an artifact out of rows or of files already in the folder
    verify, read, stream           refuse whatever is not exactly what was sealed

Versions are raised by hand when a column changes. docs/architecture.md shows this as a table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from components import manifests, parts
from components.manifests import (
    MANIFEST_FILE,
    ROWS_FILE,
    Contract,
    ContractError,
    Manifest,
    again,
    check_kind,
    check_whole,
    digest_of,
    json_file,
    manifest_of,
    required,
)

__all__ = [
    "ALL", "Contract", "ContractError", "Manifest", "again", "check_kind", "check_whole",
    "json_file", "manifest_of", "ROWS_FILE",
]  # fmt: skip

_ROWS_PER_GROUP = 20_000


def _columns(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in kinds.items()])


_STR, _I32, _I64, _F32, _F64 = pa.string(), pa.int32(), pa.int64(), pa.float32(), pa.float64()
_PROVENANCE = {"source": _STR, "domain": _STR, "licence": _STR, "title": _STR}

DOCUMENTS = Contract(
    "Documents", "1.0.0", "ingest",
    _columns(
        doc_id=_STR, source=_STR, source_version=_STR, locator=_STR, domain=_STR, licence=_STR,
        title=_STR, split=_STR, text=_STR,
    ),
)  # fmt: skip
CHUNKS = Contract(
    "Chunks", "1.0.0", "chunk",
    _columns(chunk_id=_I64, doc_id=_STR, start=_I32, end=_I32, n_wordpieces=_I32, status=_STR),
)  # fmt: skip
VECTORS = Contract("Vectors", "1.0.0", "embed", None, ("vectors.npy", "encoder.json"))
TAGS = Contract(
    "Tags", "1.0.0", "tag", _columns(chunk_id=_I64, tag=_STR, kind=_STR), ("sample.json",)
)
CONCEPTS = Contract(
    "Concepts", "1.1.0", "canonicalise",
    _columns(
        concept_id=_I32, name=_STR, description=_STR, kind=_STR, parent=_STR, taxonomy=_STR,
        prevalence=_F32, n_chunks=_I64, coherence=_F32, members=pa.list_(_STR),
    ),
    ("library.json", "centroids.npy"),
)  # fmt: skip
ANNOTATOR = Contract("Annotator", "1.0.0", "learn", None, ("head.safetensors", "annotator.json"))
LABELS = Contract(
    "Labels", "1.1.0", "annotate", _columns(chunk_id=_I64, concept_id=_I32, score=_F32),
    ("labels.json",),
)  # fmt: skip
LIFTED_WORDS = Contract(
    "LiftedWords", "1.0.0", "lift",
    _columns(concept_id=_I32, token_id=_I32, log_odds=_F32, support=_I64),
)  # fmt: skip
MESSAGES = Contract(
    "Messages", "1.0.0", "converse",
    _columns(
        conversation_id=_STR,
        messages=pa.list_(pa.struct([pa.field("role", _STR), pa.field("content", _STR)])),
        source=_STR, licence=_STR,
    ),
)  # fmt: skip
GATE_REPORT = Contract("GateReport", "1.0.0", "check", None, ("report.json", "report.html"))
TOKENS = Contract(
    "Tokens", "1.0.0", "pack",
    _columns(
        span_id=_I64, chunk_id=_I64, doc_id=_STR, split=_STR, domain=_STR, source=_STR,
        token_start=_I64, token_end=_I64, n_bytes=_I64, labelled=pa.bool_(),
        concept_ids=pa.list_(_I32),
    ),
    ("stream.npy", "tokenizer.json", "tokens.json"),
)  # fmt: skip
CHECKPOINT = Contract(
    "Checkpoint", "1.0.0", "train", None,
    ("weights.safetensors", "config.json", "concepts.json", "tokenizer.json", "training.json"),
)  # fmt: skip
CURVE = Contract(
    "Curve", "1.0.0", "train",
    _columns(
        step=_I64, tokens=_I64, flops=_F64, lr=_F64, nll_nats=_F64, valid_nll_nats=_F64,
        concept_loss=_F64, independence_loss=_F64, reconstruction_loss=_F64,
        concept_contribution=_F64,
    ),
    ("run.json",),
)  # fmt: skip
SCORES = Contract("Scores", "1.0.0", "evaluate", None, ("scores.json",))
SCALING_FIT = Contract("ScalingFit", "1.0.0", "fit", None, ("fit.json", "points.csv", "curve.png"))
_PLACE = [("chunk_id", _I64), ("doc_id", _STR), ("start", _I32), ("end", _I32)]
INDEX = Contract(
    "Index", "1.1.0", "build",
    _columns(
        row=_I64, chunk_id=_I64, doc_id=_STR, **_PROVENANCE, start=_I32, end=_I32, text=_STR,
        n_places=_I32, places=pa.list_(pa.struct(_PLACE)),
    ),
    ("index.faiss", "index.json", "transducer.safetensors"),
)  # fmt: skip
UNKNOWN_NAMES = Contract(
    "UnknownNames", "1.0.0", "name",
    _columns(
        concept_id=_I32, name=_STR, description=_STR, auc=_F32, auc_low=_F32, auc_high=_F32,
        n_chunks=_I64, contribution_share=_F32, top_tokens=pa.list_(_STR), example=_STR,
    ),
    ("names.json",),
)  # fmt: skip
ATTRIBUTIONS = Contract(
    "Attributions", "1.0.0", "attribute",
    _columns(
        prompt_id=_I32, chunk_index=_I32, position=_I32, token=_STR, kind=_STR, ref=_STR,
        name=_STR, weight=_F32, rank=_I32,
    ),
    ("summary.json",),
)  # fmt: skip
STEERING_REPORT = Contract(
    "SteeringReport", "2.0.0", "steer",
    _columns(
        concept_id=_I32, name=_STR, prevalence=_F32, prompt_id=_I32, about=pa.bool_(),
        steering_trained=pa.bool_(), arm=_STR, strength=_F32, concept_score=_F32, word_score=_F32,
        quality=_F32, harmonic_mean=_F32, nll_nats=_F32, distinct_2=_F32, repetition=_F32,
        judged_concept=_F32, judged_quality=_F32, text=_STR,
    ),
    ("summary.json",),
)  # fmt: skip
CALIBRATION = Contract(
    "Calibration", "1.0.0", "steer",
    _columns(
        concept_id=_I32, kind=_STR,
        strength_amplify=_F64, source_amplify=_STR, harmonic_mean_amplify=_F64, low_amplify=_F64,
        high_amplify=_F64, n_amplify=_I32,
        strength_suppress=_F64, source_suppress=_STR, harmonic_mean_suppress=_F64,
        low_suppress=_F64, high_suppress=_F64, n_suppress=_I32,
    ),
    ("calibration.json",),
)  # fmt: skip
STUDY = Contract(
    "Study", "1.0.0", "draw",
    _columns(
        item_id=_STR, rater_id=_STR, position=_I32, place=_I32, concept_id=_I32, branch=_STR,
        kind=_STR, name=_STR, words=pa.list_(_STR),
    ),
    ("study.json",), "clearstory study draw",
)  # fmt: skip
ANSWERS = Contract(
    "Answers", "1.0.0", "collect",
    _columns(
        item_id=_STR, rater_id=_STR, concept_id=_I32, branch=_STR, kind=_STR, name=_STR,
        rating=_I32,
    ),
    ("collected.json",), "clearstory study collect",
)  # fmt: skip
STUDY_ANALYSIS = Contract(
    "StudyAnalysis", "1.0.0", "analyse", None, ("analysis.json", "analysis.html"),
    "clearstory study analyse",
)  # fmt: skip
MODEL_VERSION = Contract("ModelVersion", "1.0.0", "promote", None, ("version.json", "card.md"))
REPORT = Contract("Report", "1.0.0", "report", None, ("report.html", "report.json"))

ALL = {
    contract.name: contract
    for contract in (
        DOCUMENTS, CHUNKS, VECTORS, TAGS, CONCEPTS, ANNOTATOR, LABELS, LIFTED_WORDS, MESSAGES,
        GATE_REPORT, TOKENS, CHECKPOINT, CURVE, SCORES, SCALING_FIT, INDEX, UNKNOWN_NAMES,
        ATTRIBUTIONS, STEERING_REPORT, CALIBRATION, STUDY, ANSWERS, STUDY_ANALYSIS, MODEL_VERSION,
        REPORT,
    )
}  # fmt: skip
"""Every contract by name, in the order of the life cycle."""


def write(rows: Iterable[Mapping[str, object]], folder: Path, contract: Contract) -> int:
    """Stream rows into `rows.parquet` and seal the folder. Returns the number of rows."""
    schema = _schema(contract)
    return write_batches(
        (pa.Table.from_pylist(list(group), schema=schema) for group in _grouped(rows, contract)),
        folder,
        contract,
    )


def write_batches(tables: Iterable[pa.Table], folder: Path, contract: Contract) -> int:
    """Write Arrow tables as `rows.parquet`, one row group each, and seal the folder."""
    schema, n_rows = _schema(contract), 0
    partial = folder / f"{ROWS_FILE}.partial"
    with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for table in tables:
            if set(table.column_names) != set(schema.names):
                raise ContractError(_wrong_columns(folder, contract, table.column_names))
            writer.write_table(table.select(schema.names).cast(schema))
            n_rows += table.num_rows
    partial.rename(folder / ROWS_FILE)
    seal(folder, contract, rows=n_rows)
    return n_rows


def seal(folder: Path, contract: Contract, rows: int = 0) -> Manifest:
    """Make an artifact of the files in `folder`: digest each, write the manifest last."""
    missing = [name for name in required(contract) if not (folder / name).is_file()]
    if missing:
        raise ContractError(f"{folder} cannot be sealed as {contract}: missing files {missing}.")
    files = {
        str(path.relative_to(folder)): digest_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST_FILE
    }
    manifest = manifests.sealed(
        contract=contract.name, version=contract.version, rows=rows, files=files
    )
    manifests.put(manifest, folder)
    return manifest


def verify(folder: Path, contract: Contract) -> Manifest:
    """The folder's manifest, after every file's size and SHA-256 was checked against it."""
    manifest = manifest_of(folder)
    check_kind(manifest, contract, str(folder))
    manifests.check_files(folder, manifest, again(contract))
    check_whole(manifest, contract, str(folder))
    return manifest


def read(folder: Path, contract: Contract, columns: Sequence[str] = ()) -> pa.Table:
    """The whole table of a verified artifact, or these columns of it."""
    return parts.read(_parts(folder, contract), columns)


def stream(folder: Path, contract: Contract, rows: int) -> Iterator[dict[str, list]]:  # type: ignore[type-arg]
    """The table of a verified artifact in batches of at most `rows`, as columns of values."""
    for batch in parts.stream(_parts(folder, contract), rows):
        yield batch.to_pydict()


def _parts(folder: Path, contract: Contract) -> list[Path]:
    """The parts of a verified artifact's table, each with the contract's columns."""
    found = parts.paths(folder, verify(folder, contract).files)
    for path in found:
        _check_schema(path, contract)
    return found


def _grouped(
    rows: Iterable[Mapping[str, object]], contract: Contract
) -> Iterator[list[Mapping[str, object]]]:
    names, rest = set(_schema(contract).names), iter(rows)
    while group := list(islice(rest, _ROWS_PER_GROUP)):
        for row in group:
            if row.keys() != names:
                raise ContractError(_wrong_columns(Path("a row"), contract, list(row)))
        yield group


def _schema(contract: Contract) -> pa.Schema:
    if contract.schema is None:
        raise ContractError(f"{contract} has no table; its files are {list(contract.files)}.")
    return contract.schema


def _check_schema(path: Path, contract: Contract) -> None:
    found, wanted = pq.read_schema(path), _schema(contract)
    if set(found.names) != set(wanted.names):
        raise ContractError(_wrong_columns(path, contract, found.names))
    wrong = parts.other_types(found, wanted)
    if wrong:
        raise ContractError(f"{path} is not {contract}: columns of another type {wrong}.")


def _wrong_columns(folder: Path, contract: Contract, found: list[str]) -> str:
    names = _schema(contract).names
    missing = [name for name in names if name not in found]
    extra = [name for name in found if name not in names]
    return (
        f"{folder} is not {contract}: missing columns {missing}, unexpected columns {extra}. "
        f"Was it written by an older stage? Rerun the stage that makes it ({contract.written_by})."
    )
