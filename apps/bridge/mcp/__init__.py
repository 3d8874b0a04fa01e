"""An MCP server: through it an outside coding agent is the agent of a campaign. Evaluator and gate stay in force."""
