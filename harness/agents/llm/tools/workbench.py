"""Where the tools of one asking work: the context, and what was read and stated so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.agents.protocol import AgentContext
from harness.domain.proposal import Hypothesis


@dataclass(slots=True)
class Workbench:
    """One for every asking and sample. ``stated`` are the hypotheses stated in this asking; ``log_read``: the log was
    queried in it (R7); ``kept`` are sources that came outside of a call, by the word that names them."""

    context: AgentContext
    stated: tuple[Hypothesis, ...] = ()
    log_read: bool = False
    kept: dict[str, str] = field(default_factory=dict)

    @property
    def known(self) -> dict[str, Hypothesis]:
        """Every hypothesis that a candidate may name, by its id."""
        return {hypothesis.id: hypothesis for hypothesis in (*self.context.hypotheses, *self.stated)}

    def keep(self, source: str) -> str:
        """Put a source aside and return the word that ``submit_candidate`` takes in place of the text."""
        word = next((word for word, text in self.kept.items() if text == source), f"KEPT-{len(self.kept) + 1}")
        self.kept[word] = source
        return word
