"""Imported boards as people read them: marked, complete, and apart from what is ranked here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from gate_world import World
from report_world import as_file, report

from apps.bridge import api
from apps.imports.models import ImportedReport
from apps.imports.screens.campaigns import SHOWN, CampaignSheet, Curve, curve
from apps.imports.services import report_import
from apps.kernels.models import Verdict
from apps.kernels.services import operators_sync

SignIn = Callable[..., Client]
INLINE = re.compile(r"<style\b|<[^>]+\sstyle=|<[^>]+\son[a-z]+=|<script(?![^>]*\bsrc=)", re.I)


def test_a_board_says_where_it_is_from_and_what_it_is_not(
    world: World, imported: ImportedReport, sign_in: SignIn
) -> None:
    text = sign_in(world.vic).get(f"/leaderboards/softmax/imported/{imported.pk}/").content.decode()
    assert "Imported, measured elsewhere." in text and "report.json" in text and "driver 580.159.04" in text
    assert "triton 3.6.0" in text and "evaluator" in text
    for words in ("torch.compile", "torch eager", "liger-kernel is not installed here.", "fastest library"):
        assert words in text, words
    assert "1.400" in text or "1.39" in text or "1.40" in text  # the paired ratio over the baseline
    assert re.search(r">\s*(champion|approved|waiting for review)\s*<", text) is None
    assert INLINE.search(text) is None


def test_libraries_are_reference_rows_without_a_place(
    world: World, imported: ImportedReport, sign_in: SignIn
) -> None:
    answer = sign_in(world.vic).get(f"/leaderboards/softmax/imported/{imported.pk}/")
    rows = {row.name: row for row in answer.context["standings"]}
    assert rows["playbook"].rank == 1 and rows["baseline"].rank == 2
    assert rows["torch.compile"].rank is None and rows["torch.compile"].over_library == pytest.approx(1.0)
    assert rows["playbook"].over_library == pytest.approx(((11.9 / 9.5) * (5.0 / 2.4)) ** 0.5)
    assert rows["Liger"].over_library is None and rows["Liger"].absent


def test_curves_predictions_and_logs_are_there(world: World, imported: ImportedReport, sign_in: SignIn) -> None:
    client = sign_in(world.vic)
    for axis in ("evaluations", "device", "time", "nothing of the kind"):
        answer = client.get(f"/leaderboards/softmax/imported/{imported.pk}/?axis={axis}")
        assert answer.status_code == 200
        labels = [one["text"] for one in json.loads(answer.context["curves"])["layout"]["annotations"]]
        assert labels == ["playbook 1.400×", "autotune 1.150×"]
    text = answer.content.decode()
    assert "Idea 2 moves fewer bytes." in text
    assert "promised too much on average by 0.095" in text  # reckoned here from the log


def test_a_report_page_tells_versions_figures_and_means(
    world: World, imported: ImportedReport, sign_in: SignIn
) -> None:
    text = sign_in(world.vic).get(f"/leaderboards/imported/{imported.pk}/").content.decode()
    assert "1 of 1 reached" in text and "torch 2.11.0" in text and "best library over ours" in text.lower()
    assert text.count("/leaderboards/softmax/imported/") == 1


def test_the_list_shows_imported_boards_apart(world: World, imported: ImportedReport, sign_in: SignIn) -> None:
    text = sign_in(world.vic).get("/leaderboards/").content.decode()
    ours, _, theirs = text.partition('id="imported-h"')
    assert "nvidia-h200" not in ours and theirs.count("/imported/") >= 4
    nothing = sign_in(world.vic).get("/leaderboards/softmax/").content.decode()
    assert "Nothing to rank" in nothing and "Imported results" in nothing


def test_kernels_and_verdicts_of_a_report_can_be_read_by_everybody_signed_in(
    world: World, imported: ImportedReport, sign_in: SignIn
) -> None:
    verdict = Verdict.objects.filter(foreign=True).order_by("-id")[0]
    for person in (world.vic, world.stranger):
        client = sign_in(person)
        page = client.get(f"/verdicts/{verdict.pk}/").content.decode()
        assert "Made elsewhere." in page and "report.json" in page
        kernel = client.get(f"/kernels/{verdict.kernel.short}/").content.decode()
        assert "foreign" in kernel and "imported" in kernel
    assert sign_in(None).get(f"/verdicts/{verdict.pk}/").status_code == 302


def test_signed_out_people_see_imported_boards_only_where_boards_are_public(
    imported: ImportedReport, sign_in: SignIn, settings: Any
) -> None:
    address = f"/leaderboards/softmax/imported/{imported.pk}/"
    assert sign_in(None).get(address).status_code == 302
    settings.PUBLIC_BOARDS = True
    text = sign_in(None).get(address).content.decode()
    assert "torch.compile" in text and "/kernels/" not in text and "/verdicts/" not in text


def test_what_is_not_there_is_404(world: World, imported: ImportedReport, sign_in: SignIn) -> None:
    client = sign_in(world.vic)
    for address in (f"/leaderboards/softmax/imported/{imported.pk + 1}/", "/leaderboards/imported/999/",
                    f"/leaderboards/decode_attention/imported/{imported.pk}/"):
        assert client.get(address).status_code == 404, address


def test_the_command_imports_once_and_says_so(world: World, tmp_path: Path) -> None:
    path, said = tmp_path / "h200.json", StringIO()
    path.write_bytes(as_file(report("softmax")))
    call_command("import_results", str(path), by="ada", stdout=said)
    call_command("import_results", str(path), stdout=said)
    first, second = said.getvalue().splitlines()
    assert first.endswith("imported.") and second.endswith("imported before, nothing changed.")
    assert ImportedReport.objects.get().imported_by == world.ada


def test_the_command_refuses_with_the_place_of_the_fault(world: World, tmp_path: Path) -> None:
    document = report("softmax")
    document["operators"][0]["rows"][0]["gbps"] = 1.0
    path = tmp_path / "h200.json"
    path.write_bytes(as_file(document))
    with pytest.raises(CommandError, match=r"operators\[0\]\.rows.*is not what"):
        call_command("import_results", str(path), stdout=StringIO())
    with pytest.raises(CommandError, match="could not be read"):
        call_command("import_results", str(tmp_path / "none.json"), stdout=StringIO())
    with pytest.raises(CommandError, match="no active account"):
        call_command("import_results", str(path), by="nobody", stdout=StringIO())


def test_a_later_report_on_the_same_class_comes_first(world: World, imported: ImportedReport, sign_in: SignIn) -> None:
    later = report("softmax")
    later["began"] = "2026-12-01T10:00:00+00:00"
    row, _ = report_import(data=as_file(later), file="later.json", by=None)
    keys = sign_in(world.vic).get("/leaderboards/").context["imported"]
    assert [(key.report, key.newest) for key in keys if key.operator == "softmax"] == [
        (row.pk, True), (imported.pk, False)]


def test_operator_pages_lead_to_imported_boards(world: World, imported: ImportedReport, sign_in: SignIn) -> None:
    client = sign_in(world.vic)
    address = f"/leaderboards/softmax/imported/{imported.pk}/"
    for page in ("/operators/", "/operators/softmax/", "/hardware/nvidia-h200/"):
        assert address in client.get(page).content.decode(), page
    assert address not in client.get("/operators/rms_norm/").content.decode()


def test_operators_are_listed_in_the_order_of_the_harness(world: World, sign_in: SignIn) -> None:
    operators_sync()
    text = sign_in(world.vic).get("/operators/").content.decode()
    places = [text.index(f'href="/operators/{name}/"') for name in api.operator_names()]
    assert places == sorted(places)


def test_a_run_that_was_cut_off_is_shown_with_its_gaps(world: World, sign_in: SignIn) -> None:
    """Operators without rows, kernels without verdicts, figures that nobody measured."""
    document = report("softmax", "rms_norm")
    whole, empty = document["operators"]
    for kernel in whole["kernels"]:
        kernel |= {"verdict": None, "samples": None}
    whole["best"] = []
    empty |= {"rows": [], "kernels": [], "sources": {}, "campaigns": [], "best": []}
    document |= {"complete": False, "missing": ["rms_norm: nothing was measured."], "roofs": None, "finished": None}
    document["figures"][0] |= {"measured": None, "reached": None}
    document["means"][0] |= {"reached": None}
    row, _ = report_import(data=as_file(document), file="part.json", by=None)
    client = sign_in(world.vic)
    pages = {name: client.get(f"/leaderboards/{name}/imported/{row.pk}/").content.decode()
             for name in ("softmax", "rms_norm")}
    assert "Nothing measured" in pages["rms_norm"] and "rms_norm: nothing was measured." in pages["rms_norm"]
    assert "The run is not complete." in pages["softmax"]
    text = client.get(f"/leaderboards/imported/{row.pk}/").content.decode()
    assert "not complete" in text and "not measured" in text
    assert client.get("/leaderboards/").status_code == 200 and client.get("/operators/").status_code == 200


def test_of_a_long_search_the_first_entries_and_every_improvement_are_shown() -> None:
    log = [{"conclusion": "confirmed" if number % 50 == 0 else "inconclusive", "round": number}
           for number in range(1, 1001)]
    shown = CampaignSheet({"log": log}, Curve("autotune", ()), None).log
    assert [one["round"] for one in shown[:SHOWN]] == list(range(1, SHOWN + 1))
    assert [one["round"] for one in shown[SHOWN:]] == list(range(100, 1001, 50))
    assert CampaignSheet({"log": log[:SHOWN]}, Curve("playbook", ()), None).log == log[:SHOWN]


def test_a_curve_is_where_the_best_rose_and_where_it_ended() -> None:
    steps = [{"evaluation": number, "best": best, "seconds": number * 2.0, "device_seconds": 1.0 * number}
             for number, best in enumerate((None, 1.0, 1.0, 1.2, 1.2, 1.2), start=1)]
    assert curve({"agent": "autotune", "steps": steps}, "evaluations").points == ((2.0, 1.0), (4.0, 1.2), (6.0, 1.2))
    assert curve({"agent": "autotune", "steps": steps}, "time").points[-1] == (12.0, 1.2)
    assert curve({"agent": "x", "steps": []}, "device").points == ()
