"""What answers took: how many, how many tokens, how much money."""

import threading
from dataclasses import dataclass

from components.answers import Answer
from components.endpoints import LocalModel, RemoteModel


@dataclass(frozen=True)
class Account:
    """A sum. Money is what the prices in the endpoint's config make of the tokens."""

    n_answers: int = 0
    n_prompt_tokens: int = 0
    n_completion_tokens: int = 0
    cost_usd: float = 0.0


class Ledger:
    """Counts answers as they come, from any thread: those paid for and those that were kept."""

    def __init__(self, config: LocalModel | RemoteModel) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._paid: list[int] = [0, 0, 0]
        self._kept: list[int] = [0, 0, 0]

    def pay(self, answer: Answer) -> None:
        """An endpoint was asked for this one."""
        self._add(self._paid, answer)

    def keep(self, answer: Answer) -> None:
        """This one was on disk, and costs nothing again."""
        self._add(self._kept, answer)

    @property
    def paid(self) -> Account:
        """What this process asked for."""
        return self._account(self._paid)

    @property
    def kept(self) -> Account:
        """What was asked for earlier or by others, at what it cost then."""
        return self._account(self._kept)

    @property
    def total(self) -> Account:
        """Both: what all the answers cost, whoever asked. The same for the same prompts."""
        return self._account([a + b for a, b in zip(self._paid, self._kept, strict=True)])

    def _add(self, sums: list[int], answer: Answer) -> None:
        with self._lock:
            for at, n in enumerate((1, answer.n_prompt_tokens, answer.n_completion_tokens)):
                sums[at] += n

    def _account(self, sums: list[int]) -> Account:
        n_answers, n_prompt, n_completion = sums
        cost_usd = self._config.cost_usd(n_prompt, n_completion)
        return Account(n_answers, n_prompt, n_completion, cost_usd)
