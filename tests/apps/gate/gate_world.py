"""A team, its people, a campaign, and verdicts as a worker would record them; all through the services."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils import timezone

from apps.bridge import api
from apps.campaigns.jobs.services import job_complete, job_enqueue, job_lease
from apps.campaigns.jobs.workers import selftest_record
from apps.campaigns.models import Campaign, Job
from apps.campaigns.services import campaign_create, campaign_start, engine_lease, engine_tell, engine_tell_verdict
from apps.kernels.models import Kernel, Verdict
from apps.kernels.services import contribution_add, kernel_store, origin_add
from apps.reviews.models import Decision, ReviewRequest
from apps.reviews.services import gate_prepare, gate_sweep, review_decide, review_open
from apps.teams.models import Team, User
from apps.teams.services import membership_add, team_create, user_create
from harness.domain.codec import schema, to_document
from harness.domain.digest import canonical_json
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.vocabulary import Role
from harness.evaluation.timing import comparison

HARDWARE = "cpu-test-model-1t"
ENVIRONMENT = "cpu-test-model-1t / numba test"


def goal(**changes: Any) -> dict[str, Any]:
    """A valid goal for rms_norm on numba."""
    document = api.goal_default("rms_norm", "numba", HARDWARE, "llm")
    return {**document, "grant": "heavy", **changes}


def baseline() -> bytes:
    """The shipped baseline's bytes."""
    return api.baseline_source("rms_norm", "numba")


def light(value: int = 16) -> bytes:
    """A change of one declared parameter."""
    return baseline().replace(b'"BLOCK": 8', b'"BLOCK": %d' % value)


def medium(tag: str = "3") -> bytes:
    """A change in the body of the kernel function; ``tag`` makes distinct trees."""
    return baseline().replace(
        b"        for col in range(cols):\n", b"        spare = %s\n        for col in range(cols):\n" % tag.encode()
    )


def heavy(tag: str = "1") -> bytes:
    """A new kernel function."""
    extra = f"\n\n@numba.njit\ndef _extra_{tag}(x):\n    return x + {tag}\n\n\ndef run(".encode()
    return baseline().replace(b"\n\ndef run(", extra)


def made_samples(ratios: dict[str, float], *, slow_shape: bool = False, seed: int = 1) -> Samples:
    """Samples whose comparison gives about these ratios (other over candidate). Two shapes, five rounds."""
    source = random.Random(seed)

    def pair(ratio: float, shape: int) -> PairedRound:
        mine = [100.0 * source.uniform(0.998, 1.002) for _ in range(9)]
        share = 0.8 if slow_shape and shape == 1 else ratio
        return PairedRound(tuple(m * share * source.uniform(0.998, 1.002) for m in mine), tuple(mine))

    shapes = tuple(
        ShapeSamples(
            shape=name, weight=weight, aa=tuple(pair(1.0, 0) for _ in range(5)),
            versus={role: tuple(pair(ratio, index) for _ in range(5)) for role, ratio in ratios.items()},
        )
        for index, (name, weight) in enumerate((("2048x4096", 0.9), ("1x128", 0.1)))
    )
    return Samples(shapes)


def verdict_document(
    job: Job, *, ratios: dict[str, float] | None = None, outcome: str = "passed", slow_shape: bool = False,
    suspicious: tuple[str, ...] = (), isolation: int = 3, evidence: str = "bounded", evaluator: str | None = None,
    profile: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], bytes | None]:
    """A verdict document on a job's candidate with its raw samples, consistent unless changed afterwards."""
    document = json.loads(json.dumps(schema("verdict")["examples"][0]))
    request = job.request
    roles = [side["role"] for side in request["against"]]
    role = next((str(r) for r in (Role.INCUMBENT, Role.CHAMPION, Role.BASELINE) if str(r) in roles), None)
    document |= {
        "kernel": request["candidate"]["digest"], "operator": request["operator"], "backend": request["backend"],
        "hardware": request["hardware"], "target": None, "outcome": outcome, "reasons": [], "notes": [],
        "regressions": [], "suspicious": list(suspicious), "score": None, "samples": None, "step_tier": None,
        "stage": "recheck", "seed": "0" * 32, "compared_with": None, "comparison": "none", "timing": None,
        "blame": None,
    }
    document["environment"]["class"] = ENVIRONMENT
    document["evaluator"] = {"version": evaluator or api.evaluator_version(),
                             "isolation": {"level": isolation, "proved": ["landlock", "netns"]}}
    if outcome != "passed":
        document["blame"] = "infrastructure" if outcome == "infra_error" else "candidate"
        document["reasons"] = [{"code": outcome, "stage": "correctness", "text": f"It is {outcome}: 3 is not 4."}]
        return document, None
    samples = made_samples(ratios or dict.fromkeys(roles, 1.3) or {"baseline": 1.0}, slow_shape=slow_shape)
    role = role or "baseline"
    compared = comparison.compare(samples, role)
    sides = {name: to_document(comparison.compare(samples, name).overall) for name in samples.shapes[0].versus}
    data = canonical_json(to_document(samples))
    document |= {
        "comparison": str(compared.comparison), "compared_with": role, "regressions": list(compared.regressions),
        "score": compared.overall.ratio, "samples": "blob:" + api.digest(data), "profile": profile,
        "timing": {
            "evidence": evidence, "noise": compared.noise, "rounds": 5, "overall": sides, "pairs": 9, "longer": False,
            "shapes": [
                {"shape": s.shape, "weight": s.weight, "median_us": 100.0, "p10": 99.0, "p90": 101.0, "cv": 0.002,
                 "cold_us": None, "hot_us": None, "first_call_us": None, "gbps": None, "tflops": None,
                 "roof_share": None, "versus": {role: to_document(compared.shapes[s.shape])}}
                for s in samples.shapes
            ],
        },
    }
    return document, data


@dataclass
class World:
    """The people and things that tests of the gate talk about."""

    team: Team
    maintainer: User
    ada: User  # engineer, starts campaigns
    ben: User  # reviewer
    cem: User  # reviewer
    dia: User  # engineer and reviewer
    vic: User  # viewer
    stranger: User
    admin: User
    robot: User  # service account
    campaign: Campaign
    fence: int = 0
    rounds: int = 0
    kernels: dict[bytes, Kernel] = field(default_factory=dict)

    def kernel(self, source: bytes) -> Kernel:
        """A kernel row for these bytes, with the campaign's starter as its contributor, as the engine writes it."""
        kernel = kernel_store(source=source, operator=self.campaign.slot.operator, backend="numba")
        origin_add(team=self.team, kernel=kernel, source=f"campaign:{self.campaign.pk}")
        contribution_add(team=self.team, kernel=kernel, user=self.campaign.started_by, kind="started")
        return kernel

    def job(self, kernel: Kernel, *, purpose: str = "round", against: dict[str, bytes] | None = None) -> Job:
        """A queued evaluation of ``kernel``."""
        key = uuid.uuid4()
        request = api.verification_request(
            job=str(key), goal=self.campaign.goal, operator_version="1", candidate=bytes(kernel.source),
            against={"incumbent": baseline()} if against is None else against, purpose=purpose,
        )
        return job_enqueue(purpose=purpose, request=request, team=self.team, kernel=kernel, campaign=self.campaign,
                           job_id=key)

    def answer(self, job: Job, **facts: Any) -> Verdict:
        """Lease the job as a worker does and record a verdict."""
        leased = job_lease(hardware=HARDWARE, backends=["numba"])
        assert leased is not None and leased.pk == job.pk
        document, samples = verdict_document(leased, **facts)
        return job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)

    def verdict(self, source: bytes, **facts: Any) -> Verdict:
        """A recorded verdict on these bytes."""
        return self.answer(self.job(self.kernel(source)), **facts)

    def request(self, source: bytes, *, person: User | None = None, **facts: Any) -> ReviewRequest:
        """An open review request for these bytes."""
        verdict = self.verdict(source, **facts)
        return review_open(campaign=self.campaign, kernel=verdict.kernel, verdict=verdict, person=person or self.ada)

    def decide(self, request: ReviewRequest, person: User, kind: str = "approve", **changes: Any) -> Decision:
        """A decision as the browser posts it: the digest and version shown, freshly proved."""
        request.refresh_from_db()
        facts: dict[str, Any] = {
            "shown_digest": request.kernel_id, "shown_version": request.version, "reauthenticated_at": timezone.now(),
            "comment": "" if kind == "approve" else "because of the tail", "session_hash": "0" * 64,
        }
        return review_decide(request=request, person=person, kind=kind, **{**facts, **changes})

    def verify(self, request: ReviewRequest, **facts: Any) -> ReviewRequest:
        """Let the loop order the verification, answer it, and let the loop finish."""
        gate_sweep()
        request.refresh_from_db()
        assert request.verify_job is not None, (request.state, request.cause)
        self.answer(request.verify_job, **facts)
        gate_sweep()
        request.refresh_from_db()
        return request

    def promote(self, source: bytes, *approvers: User) -> ReviewRequest:
        """The whole way of a kernel to champion."""
        request = self.request(source)
        for person in approvers:
            self.decide(request, person)
        return self.verify(request)

    def new_campaign(self, starter: User | None = None, **goals: Any) -> World:
        """The same world with another running campaign on the same slot."""
        campaign = campaign_create(team=self.team, person=starter or self.ada, goal=goal(**goals))
        campaign_start(campaign=campaign, person=starter or self.ada)
        return replace(self, campaign=campaign, fence=engine_lease(campaign=campaign) or 0, rounds=0)

    def measure_baseline(self) -> None:
        """Round 0 with its verdict told to the engine."""
        start = self.campaign.start_kernel
        assert start is not None
        verdict = self.answer(self.job(start, against={}))
        engine_tell_verdict(campaign=self.campaign, fence=self.fence, round_number=0, verdict=verdict)

    def round(self, source: bytes, **facts: Any) -> Verdict:
        """One whole round through the engine: proposal, verdict, conclusion."""
        self.rounds += 1
        hypothesis = {"id": f"h{self.rounds}", "direction": "tiling", "function": "_rms_norm", "text": "Try it.",
                      "evidence": "profile", "expected_gain": 0.3}
        others = [{**hypothesis, "id": f"h{self.rounds}{letter}", "direction": direction}
                  for letter, direction in (("a", "fusion"), ("b", "layout"))] if self.rounds == 1 else []
        engine_tell(campaign=self.campaign, fence=self.fence, document=api.engine_result(
            "Proposed", round=self.rounds, queried_log=True, normal_digest=api.normal_digest(source),
            proposal={"kind": "candidate", "queried_log": True, "hypotheses": [hypothesis, *others], "version": 1,
                      "candidate": {"hypothesis": hypothesis["id"], "source": source.decode(),
                                    "change_summary": f"change {self.rounds}"}},
        ))
        row = self.campaign.rounds.get(number=self.rounds)
        assert row.kernel is not None, row.bounces
        verdict = self.answer(self.job(row.kernel), **facts)
        engine_tell_verdict(campaign=self.campaign, fence=self.fence, round_number=self.rounds, verdict=verdict)
        self.campaign.refresh_from_db()
        return verdict


def make_world() -> World:
    """Build it. The self-test of the environment passed and the gate's guards know the settings."""
    people = {name: user_create(username=name, password="a long password", name=name.capitalize())
              for name in ("mia", "ada", "ben", "cem", "dia", "vic", "sam")}
    admin = user_create(username="admin", password="a long password")
    admin.is_superuser = admin.is_staff = True
    admin.save()
    robot = user_create(username="agent", kind="service")
    team = team_create(name="Kernels", slug="kernels", founder=people["mia"])
    for name, roles in (("ada", ["engineer"]), ("ben", ["reviewer"]), ("cem", ["reviewer"]),
                        ("dia", ["engineer", "reviewer"]), ("vic", ["viewer"])):
        membership_add(team=team, user=people[name], roles=roles, by=people["mia"])
    membership_add(team=team, user=robot, roles=["engineer"], by=people["mia"])
    other = team_create(name="Others", slug="others", founder=people["sam"])
    membership_add(team=other, user=people["sam"], roles=["reviewer", "engineer"], by=None)
    gate_prepare()
    selftest_record(evaluator_version=api.evaluator_version(), environment_class=ENVIRONMENT, isolation=3,
                    backend="numba", quick=True, passed=True, report={})
    campaign = campaign_create(team=team, person=people["ada"], goal=goal())
    campaign_start(campaign=campaign, person=people["ada"])
    return World(team=team, maintainer=people["mia"], ada=people["ada"], ben=people["ben"], cem=people["cem"],
                 dia=people["dia"], vic=people["vic"], stranger=people["sam"], admin=admin, robot=robot,
                 campaign=campaign, fence=engine_lease(campaign=campaign) or 0)
