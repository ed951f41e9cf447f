"""How a batch of jobs becomes one call of the network.

Requests that differ in their prompts and seeds alone are generated together; an explanation and a
comparison run by themselves, for most of their time is attribution.
"""

from collections.abc import Hashable, Sequence

from components.explaining.explanation import explain
from components.explaining.opened import Opened
from components.explaining.page import explanation_page
from components.explaining.requests import GenerateRequest
from components.explaining.schema import Explanation, Steered
from components.explaining.steered import steer
from components.explaining.steered_page import steered_page
from components.explaining.writing import generate, unseeded
from components.serving.queueing import Job
from components.serving.schema import Answer, Asked, ExplainRequest, Loaded, SteerRequest


def sort_of(asked: Asked) -> Hashable:
    """What jobs must have in common to share a batch; an explanation shares with none."""
    return unseeded(asked.sampling) if isinstance(asked, GenerateRequest) else object()


def work(opened: Opened, jobs: Sequence[Job]) -> Sequence[Answer]:
    """Answer jobs of one sort. Each hears its text after every block, and says if it is wanted."""

    def heard(row: int, text: str) -> bool:
        jobs[row].tell(text)
        return jobs[row].is_wanted

    first = jobs[0].request
    if isinstance(first, ExplainRequest):
        return [explain(opened, first.request, first.options, heard)]
    if isinstance(first, SteerRequest):
        return [steer(opened, first.request, first.wishes, first.options, heard)]
    requests = [job.request for job in jobs if isinstance(job.request, GenerateRequest)]
    return generate(opened, requests, heard)


def page_of(answer: Explanation | Steered) -> str:
    """An answer as a page that opens from a folder."""
    return explanation_page(answer) if isinstance(answer, Explanation) else steered_page(answer)


def loaded(opened: Opened) -> Loaded:
    """What the server answers from."""
    return Loaded(
        checkpoint=opened.digest,
        max_length_tokens=opened.max_length,
        n_known=len(opened.vocabulary.known),
        n_unknown=opened.vocabulary.n_unknown,
        n_unknown_named=len(opened.vocabulary.named),
        n_index_chunks=0 if opened.retriever is None else opened.retriever.index.n,
    )
