"""A server that answers like a language model but plays scripts: an offline trial of the openai agent, and what the
agent is tested against. Nothing outside the standard library listens here."""
