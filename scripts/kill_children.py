"""Kills each child of a running ``serve`` with SIGKILL at random moments of a real campaign, then audits the rows.

``python scripts/kill_children.py [--times 10] [--rounds 4]`` starts a site of its own in a temporary folder, begins a
numba campaign with the real evaluator, kills web, engine and evaluation worker ``--times`` times each, lets the
campaign end, and says whether anything is missing or twice. Exit 1 when something is.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
FOLDER = tempfile.mkdtemp(prefix="kernelopt-kills-")
os.environ |= {"KERNELOPT_VAR": FOLDER, "KERNELOPT_SQLITE": f"{FOLDER}/kernelopt.sqlite3", "KERNELOPT_DEMO": "0",
               "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base"}

import django

django.setup()

import psutil
from django.core.management import call_command

from tests.browser.conftest import _free_port
from tests.browser.people import seed

CHILDREN = {"web": "daphne", "engine": "engine", "worker": "evalworker"}
ENDED = ("plateau", "finished", "failed", "stopped")


def child_of(site: subprocess.Popen[bytes], word: str) -> psutil.Process | None:
    """The supervised child whose command line holds ``word``, if it is there now."""
    for child in psutil.Process(site.pid).children():
        try:
            if any(part.endswith(word) or part == word for part in child.cmdline()):
                return child
        except psutil.Error:
            continue
    return None


def audit(campaign_id: int, killed: Counter[str]) -> list[str]:
    """What is missing or twice; empty when all is well."""
    from apps.campaigns.models import Campaign, EngineResult, Job, Round
    from apps.kernels.models import Verdict
    from apps.stream.models import Event

    campaign = Campaign.objects.get(pk=campaign_id)
    faults = []
    sequence = list(Event.objects.filter(stream_id=campaign.stream).order_by("seq").values_list("seq", flat=True))
    if sequence != list(range(1, len(sequence) + 1)):
        faults.append(f"event numbers have gaps or repeats: {sequence}")
    results = list(EngineResult.objects.filter(campaign=campaign).order_by("seq").values_list("seq", flat=True))
    if results != list(range(results[0], results[0] + len(results))):
        faults.append(f"engine results have gaps or repeats: {results}")
    numbers = list(Round.objects.filter(campaign=campaign).order_by("number").values_list("number", flat=True))
    if numbers != list(range(len(numbers))):
        faults.append(f"rounds have gaps or repeats: {numbers}")
    jobs = Job.objects.filter(campaign=campaign)
    for job in jobs.filter(state="succeeded"):
        if Verdict.objects.filter(job_key=job.pk).count() != 1:
            faults.append(f"job {job.pk} succeeded without exactly one verdict")
    if campaign.state not in ENDED:
        faults.append(f"the campaign is {campaign.state}: {campaign.cause}")
    states = Counter(jobs.values_list("state", flat=True))
    kinds = Counter(Event.objects.filter(stream__name__startswith="team:").values_list("kind", flat=True))
    print(f"killed {dict(killed)}; campaign {campaign.state} ({campaign.cause_code}); rounds {len(numbers)}; "
          f"events {len(sequence)}; jobs {dict(states)}; attempts {sorted(jobs.values_list('attempt', flat=True))}; "
          f"worker.down {kinds['worker.down']}, worker.up {kinds['worker.up']}")
    return faults


def main() -> int:
    """Start, kill, wait, audit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    seed()
    call_command("check", verbosity=0)
    with Path(FOLDER, "serve.log").open("wb") as log:
        site = subprocess.Popen([sys.executable, "manage.py", "serve", "--port", str(_free_port())], cwd=PROJECT,
                                stdout=log, stderr=log)
        try:
            return _run(site, options, chance)
        finally:
            site.send_signal(signal.SIGINT)
            site.wait(30)


def _run(site: subprocess.Popen[bytes], options: argparse.Namespace, chance: random.Random) -> int:
    from apps.bridge import api
    from apps.campaigns.services import campaign_create, campaign_resume, campaign_start
    from apps.teams.models import Team, User

    while any(child_of(site, word) is None for word in CHILDREN.values()):
        time.sleep(0.2)
    emma = User.objects.get(username="emma")
    goal = api.goal_default("rms_norm", "numba", api.hardware_here(), "llm")
    goal["budget"]["rounds"] = options.rounds
    campaign = campaign_create(team=Team.objects.get(slug="core"), person=emma, goal=goal, name="under fire")
    campaign_start(campaign=campaign, person=emma)
    left = [name for name in CHILDREN for _ in range(options.times)]
    chance.shuffle(left)
    killed: Counter[str] = Counter()
    while left:
        time.sleep(chance.uniform(0.5, 8.0))
        child = child_of(site, CHILDREN[left[-1]])
        if child is None:
            continue
        child.kill()
        killed[left.pop()] += 1
    pauses: Counter[str] = Counter()
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline:
        campaign.refresh_from_db()
        if campaign.state in ENDED:
            break
        if campaign.state == "paused":  # three dead workers in a row are an outage: a person lets it go on
            pauses[campaign.cause] += 1
            campaign_resume(campaign=campaign, person=emma)
        time.sleep(1)
    for cause, count in pauses.items():
        print(f"paused {count} time(s), and a person resumed it: {cause}")
    faults = audit(campaign.pk, killed)
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
