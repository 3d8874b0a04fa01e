"""A small report as ``python -m harness report`` writes it, consistent unless changed; its figures are made up."""

from __future__ import annotations

import json
from typing import Any

from apps.bridge import api
from harness.domain.codec import schema, to_document
from harness.domain.digest import canonical_json
from harness.evaluation.timing import comparison
from tests.apps.gate.gate_world import made_samples

HARDWARE = "nvidia-h200"
CLASS = "nvidia-h200 / driver 580 / triton 3.6 / test"
SHAPES = {"2048x4096": ({"rows": 2048, "cols": 4096}, 0.9, 33_554_432, 41_943_040),
          "1x128": ({"rows": 1, "cols": 128}, 0.1, 512, 640)}
US = {"ours": {"2048x4096": 9.5, "1x128": 2.4}, "baseline": {"2048x4096": 13.3, "1x128": 3.1},
      "torch eager": {"2048x4096": 21.0, "1x128": 11.0}, "torch.compile": {"2048x4096": 11.9, "1x128": 5.0}}


def better(source: bytes) -> bytes:
    """A heavy change: a new kernel function."""
    return source.replace(b"\n\ndef run(", b"\n\n@triton.jit\ndef _extra(x):\n    return x\n\n\ndef run(")


def verdict_of(source: bytes, operator: str, ratio: float | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A verdict document and its samples document; ``ratio`` over the baseline, ``None`` compared with nothing."""
    document: dict[str, Any] = json.loads(json.dumps(schema("verdict")["examples"][0]))
    samples = made_samples({"baseline": ratio or 1.0})
    compared = comparison.compare(samples, "baseline")
    told = to_document(samples)
    document |= {
        "kernel": api.digest(source), "operator": {"name": operator, "version": "1"}, "backend": "triton",
        "hardware": HARDWARE, "target": None, "outcome": "passed", "reasons": [], "notes": [], "suspicious": [],
        "score": compared.overall.ratio, "samples": "blob:" + api.digest(canonical_json(told)), "step_tier": None,
        "stage": "recheck", "seed": "0" * 32, "compared_with": "baseline", "comparison": str(compared.comparison),
        "regressions": list(compared.regressions), "blame": None,
        "timing": {
            "evidence": "bounded", "noise": compared.noise, "rounds": 5, "pairs": 9, "longer": False,
            "overall": {"baseline": to_document(compared.overall)},
            "shapes": [
                {"shape": one.shape, "weight": one.weight, "median_us": US["ours"][one.shape], "p10": 2.0, "p90": 14.0,
                 "cv": 0.002, "cold_us": 9.5, "hot_us": 8.0, "first_call_us": 900.0, "gbps": 3532.0, "tflops": 4.4,
                 "roof_share": 0.83, "versus": {"baseline": to_document(compared.shapes[one.shape])}}
                for one in samples.shapes],
        },
    }
    document["environment"]["class"] = CLASS
    document["evaluator"] = {"version": api.evaluator_version(),
                             "isolation": {"level": 3, "proved": ["landlock", "netns"]}}
    return document, told


def row(operator: str, shape: str, side: str, name: str, took: float | None, **more: Any) -> dict[str, Any]:
    """A row of the session."""
    _, _, moved, flops = SHAPES[shape]
    figures: dict[str, Any] = dict.fromkeys(("median_us", "p10", "p90", "cv", "gbps", "tflops", "roof_share", "error",
                                             "worst_ratio", "right", "graph"))
    if took is not None:
        figures |= {"median_us": took, "p10": took * 0.99, "p90": took * 1.02, "cv": 0.004, "gbps": moved / took * 1e-3,
                    "tflops": flops / took * 1e-6, "roof_share": moved / took * 1e-3 / 4270, "error": 2e-3,
                    "worst_ratio": 0.4, "right": True, "graph": True}
    return {"operator": operator, "shape": shape, "dtype": "bfloat16", "side": side, "name": name, "kernel": None,
            "version": "2.11.0" if side == "peer" else None, "n": 100 if took else 0,
            "round_us": [took] * 5 if took else [], "detail": "",
            "absent": None if took else "liger-kernel is not installed here.", **figures, **more}


def campaign_of(agent: str, operator: str, kernel: str, gains: list[float]) -> dict[str, Any]:
    """A campaign whose evaluations gave ``gains`` over the baseline, each predicted 10 % too high."""
    goal = api.goal_default(operator, "triton", HARDWARE, "llm")
    best, steps, log, told = 0.0, [], [], []
    for number, gain in enumerate(gains, start=1):
        best = max(best, gain)
        ratio = {"ratio": gain, "low": gain * 0.99, "high": gain * 1.01, "rounds_won": 5}
        steps.append({"round": number, "evaluation": number, "kernel": kernel, "outcome": "passed",
                      "comparison": "faster" if gain > 1.02 else "cannot_tell", "versus_baseline": ratio, "best": best,
                      "seconds": 11.0 * number, "device_seconds": 5.0 * number, "registers": 40, "shared_bytes": 128,
                      "spill_bytes": 0})
        expected, measured = gain * 1.1 - 1, gain - 1
        conclusion = "confirmed" if gain > 1.02 else "inconclusive"
        log.append({"round": number, "direction": "fusion:_kernel", "hypothesis": f"Idea {number} moves fewer bytes.",
                    "expected_gain": expected, "change_summary": f"change {number}", "step_tier": "medium",
                    "outcome": "passed", "performance_change": ratio, "limits_passed": True, "conclusion": conclusion,
                    "agent_claim": {"gain": expected}, "claim_contradicted": False, "do_not_repeat": False})
        told.append({"round": number, "step": f"change {number}", "direction": "fusion:_kernel", "tier": "medium",
                     "outcome": "passed", "predicted": expected, "measured": measured, "low": gain * 0.99 - 1,
                     "high": gain * 1.01 - 1, "error": -0.0953101798, "judgement": "hit"})
    last = {"ratio": best, "low": best * 0.99, "high": best * 1.01, "rounds_won": 5}
    return {"agent": agent, "label": "scripted, no LLM", "strategy": None, "grant": "heavy", "status": "finished",
            "code": "gave_up", "cause": "every strategy was tried.", "goal": goal,
            "goal_digest": api.digest_document(goal), "rounds": len(gains), "evaluations": len(gains), "seconds": 60.0,
            "device_seconds": 30.0, "hypotheses": [], "log": log, "steps": steps,
            "predictions": told if agent == "playbook" else [],
            "final": {"kernel": kernel, "round": len(gains), "outcome": "passed", "versus_baseline": last,
                      "headline": f"Final against baseline, measured afresh: {best:.3f}x."}}


def operator_of(name: str) -> dict[str, Any]:
    """One operator: the baseline and the playbook's best, two libraries, one absent."""
    base = api.baseline_source(name, "triton")
    best = better(base)
    kernels = []
    for label, source, ratio, tier in (("baseline", base, 1.0, None), ("playbook", best, 1.4, "heavy")):
        verdict, samples = verdict_of(source, name, ratio)
        kernels.append({"name": label, "digest": api.digest(source), "round": 0 if tier is None else 2, "tier": tier,
                        "agent": None if tier is None else "playbook", "verdict": verdict, "samples": samples})
    rows = []
    for shape in SHAPES:
        rows += [row(name, shape, "ours", "playbook", US["ours"][shape], kernel=api.digest(best)),
                 row(name, shape, "ours", "baseline", US["baseline"][shape], kernel=api.digest(base)),
                 row(name, shape, "peer", "torch eager", US["torch eager"][shape]),
                 row(name, shape, "peer", "torch.compile", US["torch.compile"][shape]),
                 row(name, shape, "peer", "Liger", None)]
    return {
        "name": name, "version": "1", "title": name.replace("_", " "), "dtype": "bfloat16",
        "shapes": [{"shape": shape, "dims": dims, "weight": weight, "bytes": moved, "flops": flops}
                   for shape, (dims, weight, moved, flops) in SHAPES.items()],
        "sources": {api.digest(base): base.decode(), api.digest(best): best.decode()}, "kernels": kernels,
        "rows": rows, "clocks": [],
        "campaigns": [campaign_of("playbook", name, api.digest(best), [1.2, 1.4]),
                      campaign_of("autotune", name, api.digest(base), [1.0, 1.05, 1.15])],
        "best": [{"shape": shape, "peer": "torch.compile", "peer_us": US["torch.compile"][shape], "kernel": "playbook",
                  "ours_us": US["ours"][shape],
                  "ratio": {"ratio": US["torch.compile"][shape] / US["ours"][shape], "low": 1.0, "high": 3.0,
                            "rounds_won": None}} for shape in SHAPES],
    }


def report(*operators: str) -> dict[str, Any]:
    """A whole report."""
    document: dict[str, Any] = json.loads(json.dumps(schema("report")["examples"][0]))
    document["environment"]["class"] = CLASS
    document |= {"evaluator": api.evaluator_version(), "operators": [operator_of(name) for name in operators],
                 "figures": [{"operator": operators[0], "shape": "2048x4096", "kind": "at most us", "reach": 10.0,
                              "anchor": "torch.compile 11.90 us", "measured": 9.5, "reached": True, "text": "9.50 us"}],
                 "means": [{"name": "best library over ours", "shapes": 2, "ratio": 1.6, "reach": 1.4,
                            "reached": True}]}
    return document


def as_file(document: dict[str, Any]) -> bytes:
    """The document as a file's bytes."""
    return json.dumps(document, indent=1).encode()
