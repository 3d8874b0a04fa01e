"""What comes in: once, checked and computed anew, marked for good."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_world import World
from report_world import CLASS, HARDWARE, as_file

from apps.audit.models import AuditEntry
from apps.core.errors import Invalid
from apps.imports.models import ImportedBoard, ImportedKernel, ImportedReport
from apps.imports.services import report_import
from apps.kernels.models import Kernel, Verdict

Document = dict[str, Any]
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SHIPPED = sorted(BENCHMARKS.glob("*/**/report.json"))


def test_a_report_becomes_rows_marked_as_foreign(imported: ImportedReport) -> None:
    assert (imported.hardware, imported.environment_class, imported.file) == (HARDWARE, CLASS, "report.json")
    assert [board.operator.name for board in imported.boards.all()] == ["rms_norm", "softmax"]
    verdicts = Verdict.objects.filter(imported__board__report=imported)
    assert verdicts.count() == 4
    assert all(row.foreign and row.team is None and row.recomputed and row.job_key is None for row in verdicts)
    kernels = ImportedKernel.objects.filter(board__operator__name="softmax")
    assert [(row.name, row.tier) for row in kernels] == [("baseline", "none"), ("playbook", "heavy")]
    entry = AuditEntry.objects.get(verb="report.imported")
    assert entry.actor_name == "system" and entry.digest == imported.digest
    board = imported.boards.get(operator__name="softmax").document
    assert "sources" not in board and "kernels" not in board  # megabytes that no page reads


def test_the_same_report_again_writes_nothing(imported: ImportedReport, document: Document) -> None:
    before = [model.objects.count() for model in (ImportedReport, ImportedBoard, Verdict, Kernel, AuditEntry)]
    other_layout = json.dumps(document, sort_keys=True).encode()
    row, new = report_import(data=other_layout, file="again.json", by=None)
    assert (row.pk, new) == (imported.pk, False)
    assert [model.objects.count() for model in (ImportedReport, ImportedBoard, Verdict, Kernel, AuditEntry)] == before


def softmax(document: Document) -> Document:
    return document["operators"][1]


LIES: dict[str, tuple[Callable[[Document], object], str]] = {
    "a verdict that calls itself faster than its samples": (
        lambda d: softmax(d)["kernels"][1]["verdict"]["timing"]["overall"]["baseline"].update(ratio=9.0, high=9.1),
        "not those of the raw samples"),
    "another comparison": (
        lambda d: softmax(d)["kernels"][0]["verdict"].update(comparison="faster"), "its raw samples say"),
    "samples exchanged": (
        lambda d: softmax(d)["kernels"][1].update(samples=softmax(d)["kernels"][0]["samples"]), "raw samples"),
    "samples left out": (lambda d: softmax(d)["kernels"][1].update(samples=None), "are missing"),
    "a lower tier": (lambda d: softmax(d)["kernels"][1].update(tier="light"), "from its bytes it is heavy"),
    "a source under another digest": (
        lambda d: softmax(d)["sources"].update({"sha256:" + "1" * 64: "PARAMS = {}\n"}), "has another digest"),
    "a kernel without its source": (
        lambda d: softmax(d)["sources"].pop(softmax(d)["kernels"][1]["digest"]), "is not in it"),
    "a verdict from another device": (
        lambda d: softmax(d)["kernels"][1]["verdict"].update(hardware="nvidia-b200"), "the report about"),
    "a rate that time and bytes do not give": (lambda d: softmax(d)["rows"][0].update(gbps=9999.0), "is not what"),
    "a median outside its spread": (lambda d: softmax(d)["rows"][0].update(p90=1.0), "outside its own spread"),
    "timed and absent": (lambda d: softmax(d)["rows"][0].update(absent="not here"), "both timed and absent"),
    "a shape that nobody listed": (lambda d: softmax(d)["rows"][0].update(shape="1x1"), "does not list"),
    "a slower library called the best": (
        lambda d: softmax(d)["best"][0].update(peer="torch eager", peer_us=21.0), "best library"),
    "a kernel of ours that is not the fastest": (lambda d: softmax(d)["best"][0].update(ours_us=4.0), "best kernel"),
    "a curve above its points": (
        lambda d: softmax(d)["campaigns"][1]["steps"][0].update(best=2.0), "measured until then"),
    "a goal under another digest": (
        lambda d: softmax(d)["campaigns"][0].update(goal_digest="sha256:" + "2" * 64), "another digest"),
    "a flattering prediction error": (
        lambda d: softmax(d)["campaigns"][0]["predictions"][0].update(error=0.0), "prediction error"),
    "a figure called reached": (lambda d: d["figures"][0].update(measured=12.0), "called reached"),
    "a mean called reached": (lambda d: d["means"][0].update(ratio=1.1), "called reached"),
    "a ratio that its medians do not give": (
        lambda d: softmax(d)["best"][0]["ratio"].update(ratio=900.0, high=901.0), "its two medians give"),
    "a ratio below nothing": (
        lambda d: softmax(d)["best"][0]["ratio"].update(low=-1.0), "outside its interval"),
    "a best pair twice": (lambda d: softmax(d)["best"].append(softmax(d)["best"][0]), "two best pairs"),
    "another operator's kernel": (
        lambda d: softmax(d)["sources"].update(d["operators"][0]["sources"]), "is no kernel of softmax"),
    "hardware that is a path": (lambda d: d.update(hardware="../../etc"), "is no hardware"),
    "a number out of this world": (lambda d: softmax(d)["rows"][0].update(n=10**300), "beyond anything"),
    "an evaluator of its own": (lambda d: d.update(evaluator="0.0.1"), "Verdicts are of evaluator"),
    "a day to come": (lambda d: d.update(began="9998-01-01T00:00:00+00:00"), "not in the time"),
    "a name without end": (lambda d: softmax(d)["kernels"][1].update(name="x" * 5000), "longer than any"),
    "an invisible name": (lambda d: softmax(d)["kernels"][1].update(name="a\u202eb"), "invisible"),
    "an operator twice": (lambda d: d["operators"].append(softmax(d)), "stands twice"),
    "an unknown operator": (lambda d: softmax(d).update(name="hadamard"), "does not know"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_report_that_contradicts_itself_is_refused_whole(world: World, document: Document, lie: str) -> None:
    change, words = LIES[lie]
    change(document)
    with pytest.raises(Invalid, match=words):
        report_import(data=as_file(document), file="report.json", by=None)
    assert not ImportedReport.objects.exists() and not Verdict.objects.exists()


def cases(document: Document) -> list[Document]:
    return softmax(document)["kernels"][1]["verdict"]["correctness"]["cases"]


def test_errors_of_values_at_the_ends_of_float32_come_in(world: World, document: Document) -> None:
    cases(document)[0].update(error=3.3e35, baseline_error=3.3e35, library_error=6.7e35)
    row, new = report_import(data=as_file(document), file="report.json", by=None)
    assert new
    kept = ImportedKernel.objects.get(board__report=row, board__operator__name="softmax", name="playbook").verdict
    assert kept.document["correctness"]["cases"][0]["library_error"] == 6.7e35


def test_an_error_beyond_all_formats_is_refused(world: World, document: Document) -> None:
    cases(document)[0].update(error=1e81)
    with pytest.raises(Invalid, match="beyond anything"):
        report_import(data=as_file(document), file="report.json", by=None)


SPELLED = "x.verdict.reasons"
ELSEWHERE: dict[str, Callable[[Document], object]] = {
    "roofs": lambda d: d.update(roofs={**(d["roofs"] or {}), SPELLED: 1e70}),
    "clocks": lambda d: d["environment"].update(clocks={SPELLED: {"operators[0].kernels[0].verdict.notes[0]": 10**70}}),
    "dims": lambda d: softmax(d)["shapes"][0].update(dims={"rows": 1, SPELLED: 10**70}),
    "stages": lambda d: softmax(d)["kernels"][1]["verdict"].setdefault("stages", {}).update({SPELLED: 1e70}),
}


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_name_spelled_like_the_way_to_an_element_makes_no_room(world: World, document: Document, place: str) -> None:
    ELSEWHERE[place](document)
    with pytest.raises(Invalid, match="beyond anything"):
        report_import(data=as_file(document), file="report.json", by=None)


def test_a_share_beyond_all_numbers_breaks_no_page(world: World, document: Document, sign_in: Any) -> None:
    bound = {"output": "y", "index": [10**79], "error": 1e79, "absolute": 1e79, "relative": 1e79, "scale": 1e-300,
             "honest": 1e80, "rounding": 5e-324, "cap": 0, "binding": "override", "reason": "made up"}
    cases(document)[0].update(error=10**79, baseline_error=5e-324, worst_ratio=1e80, bound=bound)
    report_import(data=as_file(document), file="report.json", by=None)
    verdict = ImportedKernel.objects.get(board__operator__name="softmax", name="playbook").verdict
    answer = sign_in(world.vic).get(f"/verdicts/{verdict.pk}/")
    assert answer.status_code == 200 and "∞" in answer.content.decode()


@pytest.mark.parametrize("path", SHIPPED, ids=[str(path.relative_to(BENCHMARKS)) for path in SHIPPED])
def test_every_report_that_is_shipped_comes_in(path: Path, world: World) -> None:
    row, new = report_import(data=path.read_bytes(), file=path.name, by=None)
    assert new and row.boards.exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": 1}', b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}',
                                  b'{"a": "\\ud800"}', b'{"a": 1e999}'])
def test_what_is_no_report_is_refused_with_a_sentence(db: None, data: bytes) -> None:
    with pytest.raises(Invalid) as refusal:
        report_import(data=data, file="x.json", by=None)
    assert refusal.value.text.endswith((".", "…")) or ":" in refusal.value.text
    assert not ImportedReport.objects.exists()
