"""Server time of the pages with 50 campaigns and 5,000 rounds, and the memory of the web process.

Run from the repository root: ``python benchmarks/web.py [--repeat N]``. Builds a database of its own in a temporary
folder: nothing in it was measured, and nothing of it is left.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
FOLDER = tempfile.mkdtemp(prefix="kernelopt-benchmark-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
os.environ |= {"KERNELOPT_VAR": FOLDER, "KERNELOPT_SQLITE": f"{FOLDER}/db.sqlite3",
               "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base"}

import django

django.setup()

import psutil
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from table import print_machine, print_table

CAMPAIGNS, ROUNDS = 50, 100
BUDGET_MS, BUDGET_MB = 150.0, 120.0


def _verdict(team: Any, kernel: Any, goal: dict[str, Any], here: str) -> Any:
    """A verdict with the schema's example for what it says, under a job that is leased as a worker leases it."""
    from apps.bridge import api
    from apps.campaigns.jobs.services import job_enqueue, job_lease
    from apps.kernels.models import Verdict
    from harness.domain.codec import schema

    key = uuid.uuid4()
    request = api.verification_request(job=str(key), goal=goal, operator_version="1", candidate=bytes(kernel.source),
                                       against={}, purpose="round")
    job_enqueue(purpose="round", request=request, team=team, kernel=kernel, job_id=key)
    job_lease(hardware=here, backends=["numba"])
    document = schema("verdict")["examples"][0] | {"kernel": kernel.digest, "hardware": here}
    return Verdict.objects.create(
        job_key=key, team=team, kernel=kernel, purpose="round", workload="llm", document=document, outcome="passed",
        comparison="faster", compared_with="incumbent", hardware=here,
        environment_class=document["environment"]["class"], evaluator_version="1.0", operator_version="1",
        isolation=3, evidence="bounded")


def fill(campaigns: int = CAMPAIGNS, rounds: int = ROUNDS) -> dict[str, str]:
    """Write the rows; answers the pages to read, by name."""
    from apps.bridge import api
    from apps.campaigns.models import Campaign, Round
    from apps.kernels.models import Operator
    from apps.kernels.services import hardware_register, kernel_store, operators_sync, slot_open
    from apps.stream.services import recording
    from apps.teams.services import membership_add, team_create, user_create
    from harness.domain.codec import schema

    call_command("migrate", interactive=False, verbosity=0)
    operators_sync()
    here = api.hardware_here()
    device = hardware_register(name=here, title="this machine", backends=["numba"], facts={})
    mia = user_create(username="mia", password="a long enough password", name="Mia")
    team = team_create(name="Core", slug="core", founder=mia)
    emma = user_create(username="emma", password="a long enough password", name="Emma")
    membership_add(team=team, user=emma, roles=["engineer"], by=mia)
    rms_norm = Operator.objects.get(name="rms_norm")
    kernel = kernel_store(source=api.baseline_source("rms_norm", "numba"), operator=rms_norm, backend="numba")
    slot = slot_open(team=team, operator=rms_norm, backend="numba", hardware=device, workload="llm")
    goal, now = api.goal_default("rms_norm", "numba", here, "llm"), timezone.now()
    verdict = _verdict(team, kernel, goal, here)
    entry = schema("log")["examples"][0]
    for number in range(campaigns):
        campaign = Campaign.objects.create(
            team=team, slot=slot, name=f"campaign {number}", state="finished", goal=goal, grant="medium",
            goal_digest="sha256:" + "0" * 64, operator_version="1", agent_kind="playbook", started_by=emma,
            started_at=now, state_since=now, ended_at=now, incumbent=kernel, incumbent_verdict=verdict,
            imported_from="benchmark")
        Round.objects.bulk_create([
            Round(campaign=campaign, number=n, state="concluded", kernel=kernel, verdict=verdict, outcome="passed",
                  comparison="faster", conclusion="confirmed", direction="fusion:_kernel", step_tier="medium",
                  hypothesis=entry["hypothesis"], change_summary=entry["change_summary"],
                  entry=entry | {"round": n}, started_at=now, state_since=now, ended_at=now)
            for n in range(rounds)])
        for n in range(0, rounds, 10):
            with recording(campaign.stream) as log:
                log.append(campaign.stream, "round.concluded", {"round": n, "outcome": "passed"})
    slot_path = f"/operators/rms_norm/numba/{here}/llm/"
    return {"home": "/", "campaigns": "/campaigns/", f"campaign of {rounds} rounds": f"/campaigns/{campaign.pk}/",
            "round": f"/campaigns/{campaign.pk}/rounds/{rounds // 2}/", "new campaign": "/campaigns/new/",
            "kernel": f"/kernels/{kernel.digest}/", "verdict": f"/verdicts/{verdict.pk}/", "reviews": "/reviews/",
            "operators": "/operators/", "operator": "/operators/rms_norm/", "slot": slot_path,
            "leaderboards": "/leaderboards/", "board": "/leaderboards/rms_norm/", "system": "/system/",
            "team": "/teams/core/", "sign in": "/accounts/sign-in/"}


def main() -> None:
    """Fill, read every page once to warm up, then measure."""
    from apps.teams.models import User

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each campaign")
    chosen = parser.parse_args()
    repeat, pages = chosen.repeat, fill(chosen.campaigns, chosen.rounds)
    client = Client(HTTP_HOST="localhost")
    client.force_login(User.objects.get(username="emma"))
    rows = []
    for name, path in pages.items():
        if client.get(path).status_code != 200:
            raise SystemExit(f"{path} answers {client.get(path).status_code}")
        times = []
        for _ in range(repeat):
            began = time.perf_counter()
            client.get(path)
            times.append((time.perf_counter() - began) * 1000)
        rows.append((name, times, BUDGET_MS))
    of = f"{chosen.campaigns} campaigns and {chosen.campaigns * chosen.rounds} rounds"
    print_table(f"Pages with {of}", "ms of server time", rows)
    print_table("This process after all pages", "MB resident",
                [("memory", [psutil.Process().memory_info().rss / 1e6], BUDGET_MB)])
    print_machine("django", "channels", "daphne")


if __name__ == "__main__":
    main()
