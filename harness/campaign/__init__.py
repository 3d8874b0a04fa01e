"""One campaign on this machine: joins the engine, an agent and the evaluator. The web runner uses the same pieces."""
