"""Questions that the web side asks the harness. Plain values in, plain values out; no app is imported here.

Everything heavy is imported inside the functions, so that importing this package loads no compiler and no array
library, and the web process stays small.
"""

from __future__ import annotations

from apps.bridge.api.catalogue import (
    DeviceFacts,
    OperatorFacts,
    WorkloadFacts,
    baseline_source,
    compile_targets,
    devices_here,
    environment_class_here,
    evaluator_version,
    hardware_digest,
    hardware_here,
    hardware_known,
    operator,
    operator_names,
    operators,
)
from apps.bridge.api.endpoints import EndpointOf, EndpointsHere, ModelOf, PriceOf, endpoints_of
from apps.bridge.api.engine import (
    EngineFacts,
    RoundFacts,
    engine_fold,
    engine_result,
    engine_start,
    engine_state,
    evaluated_result,
    facts_of,
    log_columns,
)
from apps.bridge.api.errors import BridgeError
from apps.bridge.api.goals import GoalFacts, goal_check, goal_default
from apps.bridge.api.libraries import LibraryFacts, libraries
from apps.bridge.api.outside import OutsideAsked, outside_asked, outside_result
from apps.bridge.api.predicted import Predicted, predicted
from apps.bridge.api.reports import ReportFacts, is_report, report_check, report_digest
from apps.bridge.api.requests import request_check, verification_request
from apps.bridge.api.sources import (
    TIERS,
    Finding,
    TierFacts,
    canonical,
    classify,
    digest,
    digest_document,
    findings,
    normal_digest,
    rank,
    read_source,
)
from apps.bridge.api.verdicts import Recomputed, VerdictFacts, recompute, verdict_check
from apps.bridge.api.words import plain_text

__all__ = [
    "TIERS",
    "BridgeError",
    "DeviceFacts",
    "EndpointOf",
    "EndpointsHere",
    "EngineFacts",
    "Finding",
    "GoalFacts",
    "LibraryFacts",
    "ModelOf",
    "OperatorFacts",
    "OutsideAsked",
    "Predicted",
    "PriceOf",
    "Recomputed",
    "ReportFacts",
    "RoundFacts",
    "TierFacts",
    "VerdictFacts",
    "WorkloadFacts",
    "baseline_source",
    "canonical",
    "classify",
    "compile_targets",
    "devices_here",
    "digest",
    "digest_document",
    "endpoints_of",
    "engine_fold",
    "engine_result",
    "engine_start",
    "engine_state",
    "environment_class_here",
    "evaluated_result",
    "evaluator_version",
    "facts_of",
    "findings",
    "goal_check",
    "goal_default",
    "hardware_digest",
    "hardware_here",
    "hardware_known",
    "is_report",
    "libraries",
    "log_columns",
    "normal_digest",
    "operator",
    "operator_names",
    "operators",
    "outside_asked",
    "outside_result",
    "plain_text",
    "predicted",
    "rank",
    "read_source",
    "recompute",
    "report_check",
    "report_digest",
    "request_check",
    "verdict_check",
    "verification_request",
]
