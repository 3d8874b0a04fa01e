"""What binds a kernel, in words and bars, wherever a verdict with a profile is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.test import Client
from gate_world import World, made_samples, medium

from apps.bridge import api
from apps.kernels.models import Verdict
from apps.kernels.screens.sheet import sheet
from apps.kernels.screens.verdict.profile import profile_sheet
from apps.kernels.verdicts import verdict_import
from apps.reviews.screens.review import profile_of
from harness.domain.codec import schema, to_document
from harness.domain.digest import canonical_json
from harness.evaluation.timing import comparison

EXAMPLE: dict[str, Any] = next(one for one in schema("verdict")["examples"] if one.get("profile"))


def on_gpu(world: World, **changes: Any) -> Verdict:
    """The example of a GPU's verdict as one that the team imported, with samples that carry it."""
    document = json.loads(json.dumps(EXAMPLE))
    samples = made_samples({"incumbent": 1.31})
    compared = comparison.compare(samples, "incumbent")
    told = canonical_json(to_document(samples))
    kernel = world.kernel(medium())
    shape = document["timing"]["shapes"][0]
    document |= {"kernel": kernel.digest, "compared_with": "incumbent", "comparison": str(compared.comparison),
                 "regressions": list(compared.regressions), "samples": "blob:" + api.digest(told), **changes}
    document["timing"] |= {
        "noise": compared.noise, "overall": {"incumbent": to_document(compared.overall)},
        "shapes": [{**shape, "shape": one.shape, "weight": one.weight,
                    "versus": {"incumbent": to_document(compared.shapes[one.shape])}} for one in samples.shapes]}
    return verdict_import(kernel=kernel, team=world.team, document=document, samples=told, workload="llm",
                          origin="a GPU host", by=None)


def test_the_verdict_page_says_what_binds_it(world: World, sign_in: Callable[..., Client]) -> None:
    verdict = on_gpu(world)
    text = sign_in(world.vic).get(f"/verdicts/{verdict.pk}/").content.decode()
    profile = EXAMPLE["profile"]["shapes"][0]
    for words in (profile["text"], "Nsight Compute 2025.3.1.0", "bound by memory", "Warps wait for", "limited by",
                  "long_scoreboard", "copy", "TFLOP/s", "arguments", "What binds it"):
        assert words in text, words


def test_a_time_that_the_profiler_confirmed_says_so(world: World, sign_in: Callable[..., Client]) -> None:
    verdict = on_gpu(world, timing={**EXAMPLE["timing"], "evidence": "profiled"})
    text = sign_in(world.vic).get(f"/verdicts/{verdict.pk}/").content.decode()
    assert "bounded by the judge’s clock and confirmed by a profiler" in text
    assert "launcher rounds" in text and "in times that agree" in text


def test_bars_are_the_shares_of_the_document(world: World) -> None:
    found = profile_sheet(EXAMPLE)
    assert found is not None and found.counted and not found.why
    launch, gauges = EXAMPLE["profile"]["shapes"][0]["launches"][0], found.shapes[0].launches[0].gauges
    shown = {gauge.name: (gauge.share, gauge.tick) for gauge in gauges}
    assert shown["Device memory"] == (launch["dram_share"], None)
    assert shown["Active warps"] == (launch["occupancy_achieved"], launch["occupancy"])
    assert shown["Matrix units"] == (0.0, None)  # measured and zero is a bar, not measured is none
    without = json.loads(json.dumps(EXAMPLE))
    without["profile"]["shapes"][0]["launches"][0] |= {"tensor_share": None, "l2_hit": None}
    assert {"Matrix units", "L2 hits"}.isdisjoint(
        gauge.name for gauge in profile_sheet(without).shapes[0].launches[0].gauges)  # type: ignore[union-attr]


def test_without_counters_the_reason_is_said(world: World, sign_in: Callable[..., Client]) -> None:
    profile = {**EXAMPLE["profile"], "source": "launcher clock", "tool": None,
               "why": "The driver lets only root read counters."}
    verdict = on_gpu(world, profile=profile)
    text = sign_in(world.vic).get(f"/verdicts/{verdict.pk}/").content.decode()
    assert "No counters were read." in text and "The driver lets only root read counters." in text
    assert "#doctor" in text


def test_documents_without_a_profile_show_no_section(world: World, sign_in: Callable[..., Client]) -> None:
    verdict = world.campaign.incumbent_verdict
    assert verdict is not None and sheet(verdict.document).profile is None
    text = sign_in(world.vic).get(f"/verdicts/{verdict.pk}/").content.decode()
    assert "prof-h" not in text
    assert profile_sheet({}) is None and profile_sheet({"profile": None}) is None


def test_round_pages_have_a_tab_for_it(world: World, sign_in: Callable[..., Client]) -> None:
    world.round(medium("6"), ratios={"incumbent": 1.2, "baseline": 1.7}, profile=EXAMPLE["profile"])
    client = sign_in(world.vic)
    text = client.get(f"/campaigns/{world.campaign.pk}/rounds/6/").content.decode()
    assert 'id="tab-profile"' in text and "Warps wait for" in text
    assert 'id="tab-profile"' not in client.get(f"/campaigns/{world.campaign.pk}/rounds/1/").content.decode()


def test_a_review_shows_the_profile_of_the_round_where_its_own_verdict_has_none(world: World) -> None:
    """What a request rests on is often a fresh measurement that nobody profiled."""
    world.round(medium("6"), ratios={"incumbent": 1.2, "baseline": 1.7}, profile=EXAMPLE["profile"])
    row = world.campaign.rounds.get(number=6)
    fresh = world.campaign.rounds.get(number=1).verdict
    assert row.verdict is not None and fresh is not None
    for shown in (sheet(fresh.document), sheet(row.verdict.document)):
        found = profile_of(shown, row)
        assert found is not None and found.shapes[0].word == "bound by memory"
    assert profile_of(sheet(fresh.document), None) is None
