"""A campaign of a language model as the files that ``python -m harness replay`` reads: no network is needed there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from apps.bridge.api.errors import translated


def replay_files(
    *, goal: Mapping[str, Any], baseline: bytes, results: Iterable[Mapping[str, Any]], turns: Iterable[str],
    endpoints: Path,
) -> dict[str, bytes]:
    """Contents by name. ``turns`` are documents as text, one each; ``endpoints`` is the server's file, for what the
    settings say of the model: its name, context and price, never a key."""
    with translated():
        from harness.agents.llm.endpoints import load_endpoints
        from harness.campaign.folder import HARDWARE
        from harness.campaign.model_turns import FILE, MODEL
        from harness.campaign.replay import ATTENDED
        from harness.domain.codec import to_document
        from harness.domain.digest import digest_bytes

        agent = goal["agent"]
        endpoint = load_endpoints(endpoints).get(agent.get("endpoint") or "")
        facts = endpoint.facts(agent.get("model") or "") if endpoint else None
        short = digest_bytes(baseline).removeprefix("sha256:")[:8]
        return {
            "goal.json": _text(goal), HARDWARE: _text(_hardware(goal["hardware"])),
            "results.jsonl": _lines(json.dumps(one) for one in results), FILE: _lines(turns),
            MODEL: _text(to_document(facts) if facts is not None else None), ATTENDED: b"",
            f"kernels/000-{short}.py": baseline,
        }


def _hardware(name: str) -> dict[str, Any]:
    from harness.domain.errors import UsageError
    from harness.hardware.digests import digest

    try:
        return digest(name).for_agents()
    except UsageError:
        return {}


def _text(document: Any) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def _lines(texts: Iterable[str]) -> bytes:
    return "".join(text + "\n" for text in texts).encode()
