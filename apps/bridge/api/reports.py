"""Reports of ``python -m harness report``: read at the door, their own arithmetic done again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from apps.bridge.api.errors import BridgeError, translated
from apps.bridge.api.report_door import ensure_contract, ensure_header, ensure_plain, is_interval, ratio_of
from harness.domain import strict_json

CLOSE = 5e-3
"""How far a rate or a ratio of a report may lie from what its own figures give: documents round for display."""
PAIRED = 0.1
"""How far a ratio of pairs may lie from that of the two medians."""
LARGEST = 64 * 1024 * 1024
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """A report that holds together: its document, and the digest of its canonical JSON."""

    document: Document
    digest: str


def is_report(data: bytes) -> bool:
    """Whether a file looks like a report at all; ``report_check`` has the last word."""
    try:
        document = _read(data)
    except BridgeError:
        return False
    return isinstance(document, dict) and {"operators", "protocol", "figures"} <= document.keys()


def report_digest(data: bytes) -> str:
    """Digest of a report's canonical JSON, without checking it: a report is imported once, however it is laid out.

    Raises:
        BridgeError: the file is no JSON.
    """
    from apps.bridge.api.sources import digest_document

    document = _read(data)
    try:
        return digest_document(document)
    except ValueError as error:  # half of a character, a number beyond all numbers
        raise BridgeError(f"The file holds what no document can: {error}.", code="report_invalid") from error


def _read(data: bytes) -> Any:
    if len(data) > LARGEST:
        raise BridgeError(f"The file has {len(data)} bytes; at most {LARGEST} are read.", code="report_invalid")
    try:
        return strict_json.loads(data)
    except (ValueError, RecursionError, OverflowError) as error:
        raise BridgeError(f"The file is no JSON document: {error}", code="report_invalid") from error


def report_check(data: bytes) -> ReportFacts:
    """Read a report and refuse one that contradicts itself.

    Checked here: the schema, digests of sources and goals, that every kernel is there, rates against times, best pairs
    against rows, curves against their points, prediction errors, and what is called reached. Verdicts and tiers are
    computed anew where they are stored.

    Raises:
        BridgeError: with the sentence and the key of the first contradiction.
    """
    document = _read(data)
    with translated():
        from harness.domain.codec import check_schema, from_document
        from harness.domain.digest import digest_document
        from harness.domain.report import Report

        check_schema(document, "report")
        ensure_plain(document)
        from_document(document, Report)
        ensure_header(document)
        address = digest_document(document)
    names = [operator["name"] for operator in document["operators"]]
    if len(set(names)) != len(names):
        raise _differs("An operator stands twice in it.", "operators")
    for place, operator in enumerate(document["operators"]):
        _operator(document, operator, f"operators[{place}]")
    _reached(document)
    return ReportFacts(document, address)


def _differs(text: str, key: str) -> BridgeError:
    return BridgeError(f"{text} Nothing was imported.", code="report_differs", key=key)


def _near(stated: float | None, computed: float) -> bool:
    return stated is None or math.isclose(stated, computed, rel_tol=CLOSE)


def _operator(report: Document, operator: Document, key: str) -> None:
    from harness.domain.digest import digest_source
    from harness.operators.registry import NAMES

    name, shapes = operator["name"], {one["shape"]: one for one in operator["shapes"]}
    if name not in NAMES:
        raise BridgeError(f"The report is about operator '{name}', which this installation does not know. Import it "
                          "with the version that has it.", code="report_invalid", key=f"{key}.name")
    for digest, source in operator["sources"].items():
        if digest_source(source) != digest:
            raise _differs(f"The source stored as {digest} of {name} has another digest.", f"{key}.sources")
        ensure_contract(name, report["backend"], digest, source)
    for one in operator["kernels"]:
        _kernel(report, operator, one, key)
    for row in operator["rows"]:
        _row(name, row, shapes, f"{key}.rows")
    pairs = [pair["shape"] for pair in operator["best"]]
    if len(set(pairs)) != len(pairs):
        raise _differs(f"{name} has two best pairs on one shape.", f"{key}.best")
    for pair in operator["best"]:
        _best(operator, pair, f"{key}.best")
    for place, campaign in enumerate(operator["campaigns"]):
        _campaign(operator, campaign, f"{key}.campaigns[{place}]")


def _kernel(report: Document, operator: Document, kernel: Document, key: str) -> None:
    verdict, name = kernel["verdict"], operator["name"]
    if kernel["digest"] not in operator["sources"]:
        raise _differs(f"The source of {kernel['name']} of {name} is not in it.", f"{key}.kernels")
    if verdict is None:
        return
    told = (verdict["kernel"], verdict["operator"]["name"], verdict["backend"], verdict["hardware"],
            verdict["environment"]["class"])
    ours = (kernel["digest"], name, report["backend"], report["hardware"], report["environment"]["class"])
    if told != ours:
        raise _differs(f"The verdict of {kernel['name']} is about {told}, the report about {ours}.", f"{key}.kernels")
    if (verdict.get("samples") or verdict.get("timing")) and kernel["samples"] is None:
        raise _differs(f"The raw samples of the verdict on {kernel['name']} of {name} are missing.", f"{key}.kernels")


def _row(operator: str, row: Document, shapes: dict[str, Document], key: str) -> None:
    shape, took = shapes.get(row["shape"]), row["median_us"]
    if row["operator"] != operator or shape is None:
        raise _differs(f"A row is about {row['operator']} {row['shape']}, which {operator} does not list.", key)
    if (took is None) != (row["absent"] is not None):
        raise _differs(f"The row of {row['name']} on {row['shape']} is both timed and absent, or neither.", key)
    if took is None:
        return
    if took <= 0 or (row["p10"] is not None and row["p90"] is not None and not row["p10"] <= took <= row["p90"]):
        raise _differs(f"The median of {row['name']} on {row['shape']} lies outside its own spread.", key)
    for field, amount, scale in (("gbps", shape["bytes"], 1e-3), ("tflops", shape["flops"], 1e-6)):
        if not _near(row[field], amount * scale / took) and abs((row[field] or 0) - amount * scale / took) > 0.06:
            raise _differs(f"{row['name']} on {row['shape']}: {row[field]} {field} is not what {amount} in {took} "
                           "microseconds is.", key)


def _best(operator: Document, pair: Document, key: str) -> None:
    """The pair is the fastest right library and our fastest kernel of the rows."""
    rows = [row for row in operator["rows"] if row["shape"] == pair["shape"] and row["median_us"] is not None]
    peers = [row for row in rows if row["side"] == "peer" and row["right"] is not False]
    ours = [row for row in rows if row["side"] == "ours" and row["right"] is not False]
    for side, found, name, took in (("library", peers, pair["peer"], pair["peer_us"]),
                                    ("kernel", ours, pair["kernel"], pair["ours_us"])):
        fastest = min(found, key=lambda row: row["median_us"], default=None)
        if fastest is None or fastest["name"] != name or not _near(took, fastest["median_us"]):
            raise _differs(f"The best {side} on {pair['shape']} of {operator['name']} is not {name} by the rows.", key)
    if not is_interval(pair["ratio"]):
        raise _differs(f"The ratio on {pair['shape']} of {operator['name']} lies outside its interval.", key)
    if not math.isclose(pair["ratio"]["ratio"], ratio_of(pair), rel_tol=PAIRED):
        raise _differs(f"The ratio on {pair['shape']} of {operator['name']} is {pair['ratio']['ratio']}; its two "
                       f"medians give {ratio_of(pair):.3f}.", key)


def _campaign(operator: Document, campaign: Document, key: str) -> None:
    from apps.bridge.api.sources import digest_document

    if digest_document(campaign["goal"]) != campaign["goal_digest"]:
        raise _differs(f"The goal of the {campaign['agent']} campaign on {operator['name']} has another digest.", key)
    best: float | None = None
    for step in campaign["steps"]:
        ratio = step["versus_baseline"]
        if step["outcome"] == "passed" and (ratio is not None or step["round"] == 0):  # round 0 is the baseline itself
            best = max(best or 0.0, 1.0 if ratio is None else ratio["ratio"])
        if step["best"] is not None and (best is None or step["best"] > best * (1 + CLOSE)):
            raise _differs(f"The curve of {campaign['agent']} on {operator['name']} claims {step['best']} at "
                           f"evaluation {step['evaluation']}, measured until then: {best}.", f"{key}.steps")
    for told in campaign["predictions"]:
        measured, expected, error = (told.get(name) for name in ("measured", "predicted", "error"))
        if error is not None and (measured is None or expected is None or min(measured, expected) <= -1
                                  or abs(math.log1p(measured) - math.log1p(expected) - error) > CLOSE):
            raise _differs(f"The prediction error of round {told.get('round')} of {campaign['agent']} on "
                           f"{operator['name']} is not that of its gains.", f"{key}.predictions")


def _reached(report: Document) -> None:
    """What is called reached or not follows from the figures; a part of a run may leave it open."""
    for figure in report["figures"]:
        measured, reach = figure["measured"], figure["reach"]
        held = None if measured is None else measured <= reach if figure["kind"] == "at most us" else measured >= reach
        if figure["reached"] not in (None, held):
            raise _differs(f"{figure['operator']} {figure['shape']}: {measured} against {figure['kind']} {reach} is "
                           f"called reached: {figure['reached']}.", "figures")
    for mean in report["means"]:
        held = None if mean["ratio"] is None or mean["reach"] is None else mean["ratio"] >= mean["reach"]
        if mean["reached"] not in (None, held):
            raise _differs(f"'{mean['name']}' is called reached: {mean['reached']}.", "means")


__all__ = ["ReportFacts", "is_report", "report_check", "report_digest"]
