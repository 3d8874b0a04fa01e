"""What the harness answers where a model's answer was no call that could be run."""

from __future__ import annotations

from harness.agents.llm.repair import Reading
from harness.agents.llm.tools import TOOLS
from harness.agents.llm.tools.arguments import usage

NOT_RUN = "ERROR."
TOO_MANY = "ERROR. Not run: at most {most} calls of one answer are run. Call it again if you still need it."
CUT_CALL = ("ERROR. Your answer was cut off at its limit of tokens, so this call was not run: what was cut off cannot "
            "be told. Think less and send it again, whole.")
WRITTEN = "\n".join([
    "Your server does not pass tools on. Write one call as the whole answer, nothing before and nothing after it:",
    '<tool_call>{"name": "query_log", "arguments": {"direction": null}}</tool_call>',
    *(f"- {tool.description} {usage(tool)}" for tool in TOOLS.values()),
])


def advice(reading: Reading, kept: str) -> str:
    """What to do after an answer without a call. ``kept``: the word under which its kernel was put aside."""
    if reading.kind == "code":
        lines = reading.code.count("\n")
        return (f"Prose submits nothing. The kernel in your answer ({lines} lines) was put aside as {kept}, byte for "
                f'byte. To hand it in, call submit_candidate with "source": "{kept}" and all the other fields.')
    if reading.kind == "truncated":
        return (f"{reading.fault} Nothing of it was used. Think less, and call the tool directly with whole arguments.")
    if reading.kind == "refusal":
        return ("This is ordinary performance engineering of a numerical kernel. Go on with a call of a tool, or call "
                "give_up with the reason why you cannot.")
    if reading.kind == "empty":
        return "Your answer was empty. Call a tool: query_log to begin, submit_candidate or give_up to end."
    return ("Nobody reads prose. Call a tool: query_log, read_source, read_profile, read_verdict, check_feasibility, "
            "state_hypotheses, submit_candidate or give_up.")
