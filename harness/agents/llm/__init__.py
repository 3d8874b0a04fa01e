"""An agent that is a language model behind an OpenAI-compatible endpoint: it reads, proposes and is told the truth."""
