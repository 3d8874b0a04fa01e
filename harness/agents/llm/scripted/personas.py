"""Who can be played, by name; the name is the model's as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.agents.llm.scripted import difficult
from harness.agents.llm.scripted.conversation import Conversation, Said
from harness.agents.llm.scripted.good import good


@dataclass(frozen=True, slots=True)
class Persona:
    """A script and its pace: seconds before the first piece of an answer and between two."""

    name: str
    about: str
    answer: Callable[[Conversation], Said]
    first_s: float = 0.0
    gap_s: float = 0.0


PERSONAS = {persona.name: persona for persona in (
    Persona("good", "reads, states, plays the book's moves from light to heavy, gives up when it is empty", good),
    Persona("stubborn", "hands the same slow kernel in again and again and claims 3x", difficult.stubborn),
    Persona("hallucinating", "calls unknown tools and functions, forgets arguments", difficult.hallucinating),
    Persona("truncating", "is cut off in arguments, in code fences and while thinking", difficult.truncating),
    Persona("injecting", "orders readers to approve it, tries what no kernel may do", difficult.injecting),
    Persona("slow", "a good engineer at some tokens a second", good, first_s=1.0, gap_s=0.15),
)}
