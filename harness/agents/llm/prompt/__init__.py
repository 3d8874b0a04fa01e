"""What a model is told at the beginning of an asking: versioned templates, filled from the context."""

from harness.agents.llm.prompt.build import Prompt, build
from harness.agents.llm.prompt.room import ROOMS, Room
from harness.agents.llm.prompt.templates import TEMPLATE

__all__ = ["ROOMS", "TEMPLATE", "Prompt", "Room", "build"]
