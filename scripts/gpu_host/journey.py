"""From an empty installation to a champion, as people and scripts do it: only HTTP, commands and the git mirror."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dulwich.objects import Tag, Tree
from dulwich.repo import Repo

from scripts.gpu_host.record import Record, say
from scripts.gpu_host.site import Site
from scripts.gpu_host.visitor import SHOWN, Answer, Api, Failed, Visitor

TEAM, TEAM_NAME = "kernel-team", "Kernel Team"
WORKLOAD = "llm"
PEOPLE = {"mia": [], "emma": ["engineer"], "rosa": ["reviewer"], "ravi": ["reviewer"]}
"""Who there is, with the roles that the maintainer ``mia`` gives on the team's page."""
START_S, CAMPAIGN_S, REVIEW_S, PROMOTION_S = 120.0, 480.0, 180.0, 300.0
MORE_REQUESTS = 3
"""Requests for one kernel: a shape whose loss lies at the margin may be found by a verification only."""
ENDED = ("plateau", "finished", "stopped", "failed", "paused")


@dataclass
class Journey:
    """One run. ``goal`` is what is posted; ``workers`` are the devices that have to report before it starts."""

    site: Site
    record: Record
    goal: dict[str, Any]
    workers: list[str]
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    people: dict[str, Visitor] = field(default_factory=dict)
    campaign: int = 0
    request: int = 0
    champion: dict[str, Any] = field(default_factory=dict)
    board: str = ""
    conversation: bytes = b""

    def run(self) -> None:
        """All steps in order.

        Raises:
            Failed: at the first one that did not come out.
        """
        self._people_and_site()
        api = self._roles_and_token()
        self._campaign(api)
        if self.goal["agent"]["kind"] == "openai":
            self._conversation()
        self._review(api)
        self._refusals()
        self._approvals()
        for _ in range(MORE_REQUESTS):
            if self._verified(api):
                break
            self._submit_again(api)
            self._approvals()
        else:
            raise Failed(f"{MORE_REQUESTS} verifications in a row found a slower shape that nobody had accepted")
        self._promotion(api)
        self._tag()
        self._board()

    def _people_and_site(self) -> None:
        with self.record.step("database, people, team") as step:
            self.site.manage("migrate", "--verbosity", "0")
            for name in PEOPLE:
                self.site.manage("create_person", name, "--name", name.capitalize(), given=self.password + "\n")
            self.site.manage("create_team", TEAM_NAME, "--maintainer", "mia", "--slug", TEAM)
            step.text = ", ".join(PEOPLE)
        with self.record.step("server, engine, workers up") as step:
            self.site.start()
            visitor = Visitor(self.site.url)

            def up() -> str | None:
                if not self.site.up:
                    raise Failed(f"serve ended: {self.site.log()}")
                try:
                    answer = visitor.get("/ready/")
                except Failed:
                    return None
                names = re.findall(r'"([^"]+)": "up"', answer.text)
                wanted = {"engine", *(f"evalworker:{device}" for device in self.workers)}
                return ", ".join(sorted(names)) if wanted <= set(names) else None

            step.text = self.record.until("the workers' first report", up, START_S)

    def _roles_and_token(self) -> Api:
        self.people = {name: Visitor(self.site.url, name) for name in PEOPLE}
        with self.record.step("roles given on the team's page") as step:
            for person in self.people.values():
                person.sign_in(self.password)
            mia, page = self.people["mia"], f"/teams/{TEAM}/"
            for name, roles in PEOPLE.items():
                if roles:
                    done = mia.submit(page, _goes_to("/members/"), "form for members",
                                      [("username", name), *[("roles", role) for role in roles]])
                    if f"{name} is in the team" not in done.words:
                        raise Failed(f"{name} was not added: {done.words[:SHOWN]}")
            step.text = ", ".join(f"{name} {'/'.join(roles)}" for name, roles in PEOPLE.items() if roles)
        with self.record.step("API token made"):
            made = mia.submit(page, _goes_to("/tokens/"), "form for tokens",
                              [("name", "campaigns by script"), ("username", "emma"), ("can_run_campaigns", "1")])
            found = re.search(r'id="secret">([^<]+)<', made.text)
            if found is None:
                raise Failed(f"no token was made: {made.words[:SHOWN]}")
        return Api(self.site.url, found.group(1))

    def _campaign(self, api: Api) -> None:
        with self.record.step("campaign started over the API") as step:
            body = {"team": TEAM, "goal": self.goal, "name": "The product on its host"}
            row = api.must("campaigns", body)
            self.campaign = row["id"]
            step.text = f"C-{self.campaign}: {row['operator']}, {row['backend']}, {row['hardware']}, {row['agent']}"
        with self.record.step("rounds") as step:
            told: set[int] = set()

            def ended() -> dict[str, Any] | None:
                now = api.must(f"campaigns/{self.campaign}")
                for entry in now["log"]:
                    if entry["round"] not in told:
                        told.add(entry["round"])
                        say(f"{'':9}  {round_line(entry)}")
                return now if now["state"] in ENDED else None

            last = self.record.until("the campaign's plateau", ended, CAMPAIGN_S)
            step.text = f"{len(told)} in the log; {last['state']}: {last['cause']}"
            if last["state"] not in ("plateau", "finished"):
                raise Failed(f"the campaign is {last['state']}: {last['cause']}")

    def _conversation(self) -> None:
        with self.record.step("the model's answers, played again") as step:
            self.conversation = self.people["emma"].fetch(f"/campaigns/{self.campaign}/replay.zip")
            rounds = self.site.replay(self.conversation).splitlines()
            step.text = f"{len(rounds)} askings come out as they did: " + "; ".join(rounds)

    def _review(self, api: Api) -> None:
        with self.record.step("measured afresh, review requested") as step:
            event = self.record.until(
                "a request for review (no candidate was faster, or its fresh measurement was not)",
                lambda: _event(api, self.campaign, "review.opened"), REVIEW_S)
            self.request = event["data"]["request"]
            step.text = f"R-{self.request}, gate tier {event['data']['tier']}: {event['data']['because']}"
        with self.record.step("the campaign is finished") as step:
            state = api.must(f"campaigns/{self.campaign}")["state"]
            step.text = "by itself: its budget is spent"
            if state == "plateau":
                done = self.people["emma"].submit(f"/campaigns/{self.campaign}/",
                                                  lambda form: ("choice", "finish") in form.buttons,
                                                  "choice on the plateau", [("choice", "finish")])
                state = api.must(f"campaigns/{self.campaign}")["state"]
                step.text = "by its starter, on the campaign's page"
                if state != "finished":
                    raise Failed(f"the campaign is {state}: {done.words[:SHOWN]}")

    def _refusals(self) -> None:
        """What must not work: no CSRF token, the starter's own approval, a wrong password."""
        page, to = f"/reviews/{self.request}/", f"/reviews/{self.request}/decide/"
        rosa, emma = self.people["rosa"], self.people["emma"]
        form = rosa.get(page).form(_approves, "button to approve")
        shown = [(name, value) for name, value in form.hidden.items() if name != "csrfmiddlewaretoken"]
        with self.record.step("refused: no CSRF token") as step:
            step.text = _refused(rosa.post(to, [*shown, ("kind", "approve")]), 403)
        with self.record.step("refused: the starter approves") as step:
            own = emma.get(page).form(lambda one: "digest" in one.hidden, "decision form")
            step.text = _refused(emma.post(to, [*own.hidden.items(), ("kind", "approve"), ("comment", "")]), 403)
        with self.record.step("refused: a wrong password") as step:
            step.text = _refused(rosa.post(to, [*form.hidden.items(), ("kind", "approve"), ("comment", ""),
                                                ("password", "not " + self.password)]), 403)

    def _approvals(self) -> None:
        page = f"/reviews/{self.request}/"
        for name in ("rosa", "ravi"):
            with self.record.step(f"{name} proves who it is") as step:
                proved = self.people[name].submit("/accounts/confirm/", _confirms, "form",
                                                  [("password", self.password)])
                step.text = f"answered {proved.status}"
                if proved.status != 200 or "confirm" in proved.url:
                    raise Failed(f"re-authentication was refused: {proved.words[:SHOWN]}")
            with self.record.step(f"{name} approves") as step:
                person = self.people[name]
                form = person.get(page).form(_approves, "button to approve")
                ticked = [box for box in form.boxes if box[0] == "ticked"]
                done = person.post(form.action or page, [*form.hidden.items(), *ticked, ("kind", "approve"),
                                                         ("comment", "Read, and the figures hold.")])
                if done.status != 200 or "Your approval is recorded" not in done.words:
                    raise Failed(f"the approval was not recorded: {done.words[:SHOWN]}")
                counted = re.search(r"(\d+) of (\d+) approvals", done.words)
                step.text = counted.group(0) if counted else "recorded"
                if ticked:
                    step.text += f"; {len(ticked)} slower shapes accepted by name"
            if counted is None or counted.group(1) == counted.group(2):
                return
        raise Failed("two approvals were not enough")

    def _verified(self, api: Api) -> bool:
        """Whether it was promoted; ``False`` where the verification alone found a shape slower, which an approver has
        to accept by name first.

        Raises:
            Failed: the request ended otherwise, or nothing happened in time.
        """
        with self.record.step("verified anew and promoted") as step:
            def done() -> tuple[bool, str] | None:
                for kind in ("review.closed", "review.stale"):
                    event = _event(api, self.campaign, kind)
                    if event is None or event["data"]["request"] != self.request:
                        continue
                    if event["data"]["code"] == "regressions":
                        return False, f"not yet: {event['data']['cause']}"
                    raise Failed(f"{kind}: {event['data']}")
                return (True, "promoted") if _event(api, self.campaign, "promotion.done") is not None else None

            try:
                promoted, step.text = self.record.until("the promotion", done, PROMOTION_S)
            except Failed as problem:
                waits = json.loads(Visitor(self.site.url).get("/ready/").text).get("promotions_blocked")
                raise Failed(f"{problem}. What promotions wait for: {waits or 'nothing'}") from problem
            return promoted

    def _submit_again(self, api: Api) -> None:
        """The incumbent once more, now with what the verification found."""
        with self.record.step("submitted again") as step:
            self.people["emma"].submit(f"/campaigns/{self.campaign}/", _goes_to("/submit/"), "button to submit", [])

            def opened() -> int | None:
                event = _event(api, self.campaign, "review.opened")
                return event["data"]["request"] if event and event["data"]["request"] != self.request else None

            self.request = self.record.until("a second request for review", opened, REVIEW_S)
            step.text = f"R-{self.request}, with the verification's figures"

    def _promotion(self, api: Api) -> None:
        goal = self.goal
        place = (f"champions/{goal['operator']}?backend={goal['backend']}&hardware={goal['hardware']}"
                 f"&workload={goal['workload']}&team={TEAM}")
        with self.record.step("the champion's verdict") as step:
            self.champion = api.must(place)
            verdict = self.champion["verdict"]
            over = verdict["overall"].get(verdict["compared_with"], {})
            step.text = (f"V-{verdict['id']} {verdict['comparison']} than the {verdict['compared_with']}: "
                         f"{over.get('ratio', 0):.3f}x [{over.get('low', 0):.3f}, {over.get('high', 0):.3f}], "
                         f"isolation {verdict['isolation']}")
        with self.record.step("the API serves the champion") as step:
            digest = "sha256:" + hashlib.sha256(self.champion["source"].encode()).hexdigest()
            if digest != self.champion["digest"]:
                raise Failed(f"the served bytes are {digest}, the champion is {self.champion['digest']}")
            by = ", ".join(one["by"] for one in self.champion["approvals"])
            step.text = (f"{digest[:15]}, gate tier {self.champion['promotion']['gate_tier']}, approved by {by}, "
                         f"class {self.champion['environment_class']}")

    def _tag(self) -> None:
        goal = self.goal
        name = "/".join((TEAM, goal["operator"], goal["backend"], goal["hardware"], goal["workload"], "1"))
        with self.record.step("the promotion's git tag") as step:
            def tagged() -> bytes | None:
                return tagged_source(str(self.site.folder / "mirror"), name)

            source = self.record.until(f"the tag {name}", tagged, 30.0)
            if source != self.champion["source"].encode():
                raise Failed(f"the tag {name} holds other bytes than the champion")
            step.text = name

    def _board(self) -> None:
        goal = self.goal
        with self.record.step("the leaderboard shows it") as step:
            answer = self.people["rosa"].get(
                f"/leaderboards/{goal['operator']}/?backend={goal['backend']}&hardware={goal['hardware']}"
                f"&workload={goal['workload']}")
            self.board = answer.text
            rows = re.findall(r"<tr[^>]*>.*?</tr>", answer.text, re.S)
            short = self.champion["digest"].removeprefix("sha256:")[:8]
            row = next((Answer(200, "", one).words for one in rows if short in one), "")
            if answer.status != 200 or "champion" not in row or TEAM_NAME not in row:
                raise Failed(f"the board has no row of the champion {short}: {answer.words[:SHOWN]}")
            step.text = row[:200]


def tagged_source(folder: str, name: str) -> bytes | None:
    """The one file that tag ``name`` of the mirror leads to; ``None`` while there is no such tag."""
    try:
        repository = Repo(folder)
    except OSError:
        return None
    with repository:
        ref = f"refs/tags/{name}".encode()
        if ref not in repository.refs.allkeys():
            return None
        one: Any = repository[ref]
        while not isinstance(one, Tree):
            one = repository[one.object[1] if isinstance(one, Tag) else one.tree]
        for part in [*name.split("/")[1:-2], name.split("/")[-2] + ".py"]:
            one = repository[one[part.encode()][1]]
        return bytes(one.data)


def round_line(entry: dict[str, Any]) -> str:
    """A line of the experiment log."""
    change = entry["performance_change"]
    measured = f"{change['ratio']:.3f}x [{change['low']:.3f}, {change['high']:.3f}]" if change else "not timed"
    return (f"round {entry['round']}: {entry['direction']}, {entry['step_tier']}, expected "
            f"{entry['expected_gain']}, {entry['outcome']}, {measured}, {entry['conclusion']}")


def _goes_to(ending: str) -> Callable[[Any], bool]:
    return lambda form: form.action.endswith(ending)


def _confirms(form: Any) -> bool:
    return bool(form.hidden) and not form.action.endswith("/sign-out/")


def _approves(form: Any) -> bool:
    return ("kind", "approve") in form.buttons


def _refused(answer: Answer, status: int) -> str:
    """The sentence of a refusal.

    Raises:
        Failed: it was not refused like that.
    """
    if answer.status != status or "is recorded" in answer.words:
        raise Failed(f"it was answered with {answer.status}, not {status}: {answer.words[:SHOWN]}")
    alert, main = r'role="alert">(.*?)</p>', r"<main.*?>(.*?)</main>"
    part = re.search(alert, answer.text, re.S) or re.search(main, answer.text, re.S)
    words = Answer(status, answer.url, part.group(1) if part else answer.text).words
    return f"{status}: " + words.partition(" What to do")[0][:160]


def _events(api: Api, campaign: int, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        page = api.must(f"campaigns/{campaign}/events?after={after}")
        found += [event for event in page["events"] if event["kind"] == kind]
        if not page["events"] or page["events"][-1]["seq"] >= page["head"]:
            return found
        after = page["events"][-1]["seq"]


def _event(api: Api, campaign: int, kind: str) -> dict[str, Any] | None:
    return next(iter(_events(api, campaign, kind)[-1:]), None)
