"""Training chunks as a reader can check them: where the text stands in which document.

Every cited text is compared with the corpus, so that no explanation cites what is not there.
"""

from pathlib import Path

from components import contracts
from components.contracts import ContractError
from components.prompts import Prompt
from components.retrieval import Source


class Citations:
    """Documents and chunks of the corpus, looked up by id."""

    def __init__(self, documents: Path, chunks: Path) -> None:
        self._documents = contracts.read(documents, contracts.DOCUMENTS)
        self._chunks = contracts.read(chunks, contracts.CHUNKS)
        doc_ids = self._documents.column("doc_id").to_pylist()
        self._row_of = {doc_id: row for row, doc_id in enumerate(doc_ids)}

    def cite(self, found: Source) -> dict[str, object]:
        """A found chunk with its place. Raises where the corpus says something else."""
        (chunk,) = self._chunks.slice(found.chunk_id, 1).to_pylist()
        document = self._document(found.doc_id)
        if document["text"][chunk["start"] : chunk["end"]] != found.text:
            raise ContractError(
                f"the index gives chunk {found.chunk_id} another text than document "
                f"{found.doc_id} has at characters {chunk['start']}–{chunk['end']}; it was built "
                f"from another corpus. Run `clearstory rerun --from {contracts.INDEX.written_by}`."
            )
        return {
            "chunk_id": found.chunk_id,
            "cosine": found.cosine,
            "random_below_share": found.percentile,
            "n_places": found.n_places,
            "text": found.text,
            "start": chunk["start"],
            "end": chunk["end"],
            **self._provenance(document),
        }

    def origin(self, prompt: Prompt) -> dict[str, object]:
        """Where a prompt comes from, and how its document goes on."""
        document = self._document(prompt.doc_id)
        return {"split": prompt.split, **self._provenance(document)}

    def _document(self, doc_id: str) -> dict[str, str]:
        if doc_id not in self._row_of:
            raise ContractError(
                f"document {doc_id} is cited but not in the corpus; tokens and index were made "
                f"from another one. Run `clearstory run` again."
            )
        (document,) = self._documents.slice(self._row_of[doc_id], 1).to_pylist()
        found: dict[str, str] = document
        return found

    def _provenance(self, document: dict[str, str]) -> dict[str, object]:
        names = ("doc_id", "title", "domain", "source", "source_version", "locator", "licence")
        return {name: document[name] for name in names}
