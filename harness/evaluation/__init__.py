"""The evaluator: stages in order, the judge, the sandbox and the clock. Agents can neither see nor change it."""
