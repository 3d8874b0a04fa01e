"""Every word that a model puts into a proposal, on every page that repeats it: text, and nothing in it hides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.test import Client
from gate_world import World, make_world, medium
from llm_world import HOSTILE, endpoints_file, llm_world

from apps.bridge import api
from apps.campaigns.services import engine_tell, engine_tell_verdict
from apps.reviews.models import ReviewRequest
from apps.reviews.services import review_open

SIGNS = ("<script>alert", "<img src=x", "\u202e", "\u2066", "\x1b", "\x00", "\ud800")


def proposed(world: World, number: int, source: bytes, bad: str, **verdict: Any) -> None:
    """One round whose proposal is hostile wherever a model may write words."""
    hypotheses = [{"id": f"h{number}{n}", "direction": direction, "function": "_rms_norm", "text": bad, "evidence": bad,
                   "expected_gain": 0.3} for n, direction in enumerate(("tiling", "fusion", "layout"))]
    engine_tell(campaign=world.campaign, fence=world.fence, document=api.engine_result(
        "Proposed", round=number, queried_log=True, normal_digest=api.normal_digest(source), proposal={
            "kind": "candidate", "queried_log": True, "hypotheses": hypotheses, "version": 1, "trace": {"said": bad},
            "candidate": {"hypothesis": f"h{number}0", "source": source.decode(), "change_summary": bad,
                          "claim": {"gain": 9.0, "text": bad}}}))
    row = world.campaign.rounds.get(number=number)
    assert row.kernel is not None, row.bounces
    found = world.answer(world.job(row.kernel), **verdict)
    engine_tell_verdict(campaign=world.campaign, fence=world.fence, round_number=number, verdict=found)


def test_words_of_a_proposal_are_text_on_every_page(
    db: None, sign_in: Callable[..., Client], settings: Any, tmp_path: Path
) -> None:
    settings.ENDPOINTS_PATH = endpoints_file(tmp_path)
    world = llm_world(make_world())
    world.measure_baseline()
    bad = HOSTILE.replace("\ud800", "")  # half a character is taken out at the engine's door
    proposed(world, 1, medium("3"), bad, ratios={"incumbent": 1.3, "baseline": 1.3})
    world.campaign.refresh_from_db()
    verdict = world.campaign.incumbent_verdict
    assert verdict is not None
    review_open(campaign=world.campaign, kernel=verdict.kernel, verdict=verdict, person=world.ada)
    engine_tell(campaign=world.campaign, fence=world.fence, document=api.engine_result(
        "AgentFailed", round=2, reason=bad, blame="provider"))
    client = sign_in(world.ben)
    number, review = world.campaign.pk, ReviewRequest.objects.get().pk
    quoted, leaks = 0, []
    for address in ("/", "/campaigns/", f"/campaigns/compare/?ids={number}", f"/campaigns/{number}/?events=all",
                    f"/campaigns/{number}/rounds/1/", f"/reviews/{review}/", "/reviews/", "/audit/", "/system/",
                    f"/kernels/{verdict.kernel.short}/", f"/verdicts/{verdict.pk}/", f"/campaigns/new/?from={number}",
                    f"/leaderboards/{world.campaign.slot.operator}/"):
        answer = client.get(address)
        assert answer.status_code == 200, address
        text = answer.content.decode()
        leaks += [(address, ascii(text[max(0, text.find(sign) - 160):][:240])) for sign in SIGNS if sign in text]
        quoted += "&lt;script&gt;alert" in text
    assert leaks == [] and quoted >= 4
    for address in (f"/campaigns/{number}/log.json", f"/campaigns/{number}/log.csv", f"/api/v1/campaigns/{number}",
                    f"/api/v1/campaigns/{number}/events?after=0"):
        answer = client.get(address)
        assert answer.status_code == 200 and "html" not in answer["Content-Type"], address
