"""What is known of devices, and what can be done with them here."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from gate_world import HARDWARE, World

from apps.bridge import api
from apps.bridge.runner.preparation import prepare
from apps.campaigns.jobs.workers import worker_beat
from apps.kernels.models import Hardware
from apps.kernels.screens.device import device_of

SIX = ("nvidia-h200", "nvidia-h100", "nvidia-a100", "nvidia-b200", "nvidia-l40s", "amd-mi300x")


def test_all_devices_are_listed_and_have_their_page(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.vic)
    listed = client.get("/hardware/").content.decode()
    for name in (*SIX, api.hardware_here(), HARDWARE):  # the last is known by a slot alone
        assert f"/hardware/{name}/" in listed, name
        assert client.get(f"/hardware/{name}/").status_code == 200, name
    assert client.get("/hardware/tpu-9/").status_code == 404


def test_every_fact_of_the_six_has_its_source_and_every_rule_is_shown(
    world: World, sign_in: Callable[..., Client]
) -> None:
    for name in SIX:
        answer = sign_in(world.vic).get(f"/hardware/{name}/")
        device = answer.context["device"]
        assert device.facts and device.sources == len(device.facts), name
        assert device.rules and "every fact has its source" in answer.content.decode()


def test_a_device_says_what_campaigns_for_it_do_here(world: World, sign_in: Callable[..., Client]) -> None:
    def uses() -> dict[str, str]:
        return {one.name: one.use for one in sign_in(world.vic).get("/hardware/").context["devices"]}

    before = uses()
    assert before["nvidia-h200"] == "dry" and before["amd-mi300x"] == "known"
    worker_beat(name="evalworker:nvidia-h200", kind="evalworker", hardware="nvidia-h200", backends=["triton"])
    assert uses()["nvidia-h200"] == "timed"


def test_forms_offer_devices_that_something_can_be_done_with(world: World, sign_in: Callable[..., Client]) -> None:
    prepare(demo=False)
    text = sign_in(world.ada).get("/campaigns/new/?operator=softmax&backend=triton").content.decode()
    offered = set(Hardware.objects.values_list("name", flat=True))
    assert set(api.compile_targets()) <= offered and "amd-mi300x" not in offered
    for name in api.compile_targets():
        assert f'value="{name}"' in text
    assert "/hardware/nvidia-h200/" in text and "Multiprocessors" in text


@pytest.mark.parametrize("facts", [{}, {"facts": []}, {"memory_bytes": 1024, "version": 1}, {"facts": [{"name": "x"}]}])
def test_digests_of_earlier_forms_are_read(facts: dict) -> None:
    device = device_of("old", facts, [], here=False, targets=())
    assert device.title == "old" and device.use == "known" and device.sources == 0


def test_every_operator_has_a_page_and_a_form_that_reads_its_bounds(
    world: World, sign_in: Callable[..., Client]
) -> None:
    """Ten operators: whatever an operator declares (several outputs, exact results, buckets) can be shown."""
    prepare(demo=False)
    client = sign_in(world.ada)
    for facts in api.operators():
        text = client.get(f"/operators/{facts.name}/").content.decode()
        assert ("no error" in text) == any(not one["cap"] for one in facts.tolerances), facts.name
        for workload in facts.workloads:
            for points in workload.shapes.values():
                assert all(point["label"] in text for point in points), facts.name
        for backend in facts.backends:
            form = client.get(f"/campaigns/new/?operator={facts.name}&backend={backend}")
            assert form.status_code == 200 and form.context["form"].valid, (facts.name, backend)
