"""The site's frame: key, settings, guards at the door, and a bridge that stays light."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib import admin
from django.core.checks import run_checks
from django.db import connection
from django.test import Client, override_settings
from hypothesis import given
from hypothesis import strategies as st

from apps.bridge import api
from apps.leaderboards.ranking import BoardRow, ranked
from apps.reviews import triggers
from apps.teams.models import User
from kernelopt_site import env

ROOT = Path(__file__).resolve().parents[3]


def test_secret_key_is_made_once_and_readable_by_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))
    monkeypatch.delenv("KERNELOPT_SECRET_KEY", raising=False)
    first = env.secret_key()
    assert env.secret_key() == first
    assert len(first) > 60
    path = tmp_path / "var" / "secret_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secret_key"]


def test_scripts_and_styles_come_from_the_site_alone() -> None:
    policy = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    text = " ".join(str(source) for sources in policy.values() for source in sources)
    assert "unsafe" not in text and "*" not in text and "http" not in text


def test_database_takes_the_write_lock_at_the_start_and_requests_are_no_transactions() -> None:
    database = settings.DATABASES["default"]
    assert database["ATOMIC_REQUESTS"] is False
    if connection.vendor == "sqlite":
        assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
        assert database["OPTIONS"]["timeout"] == 20


@pytest.mark.django_db
def test_system_check_names_missing_guards() -> None:
    assert [e.id for e in run_checks(databases=["default"]) if e.id.startswith("reviews")] == []
    triggers.lift()
    found = [e for e in run_checks(databases=["default"]) if e.id == "reviews.W001"]
    assert len(found) == 1
    assert "gate_promotion_approvals" in found[0].msg
    triggers.install()
    assert triggers.missing() == []


@pytest.mark.django_db
def test_altered_guard_is_noticed() -> None:
    rule = next(rule for rule in triggers.RULES if rule.name == "gate_promotion_veto")
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"DROP TRIGGER {rule.name}")
            cursor.execute(f"CREATE TRIGGER {rule.name} BEFORE INSERT ON {rule.table} BEGIN SELECT 1; END")
        else:
            cursor.execute(f"CREATE OR REPLACE FUNCTION {rule.name}() RETURNS trigger LANGUAGE plpgsql AS "
                           "$gate$ BEGIN RETURN NEW; END $gate$")
    assert triggers.missing() == ["gate_promotion_veto"]


@pytest.mark.django_db
def test_admin_asks_for_a_sign_in() -> None:
    assert Client().get("/admin/reviews/decision/").status_code == 302


@pytest.mark.django_db
def test_the_admin_changes_none_of_the_rows_that_it_shows() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="a long enough password"))
    shown = {model._meta.label for model in admin.site._registry}
    assert {"teams.User", "kernels.Promotion", "reviews.Decision"} <= shown and "auth.Group" not in shown
    for model in admin.site._registry:
        place = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert client.get(place).status_code == 200, place
        assert client.get(place + "add/").status_code == client.post(place + "add/", {}).status_code == 403, place


def test_bridge_loads_no_compiler_and_no_array_library() -> None:
    code = ("import sys; sys.path.insert(0, '.'); import apps.bridge.api as api; api.operators(); "
            "api.goal_default('rms_norm', 'numba', 'x', 'llm'); "
            "print(sorted({m.split('.')[0] for m in sys.modules} "
            "& {'torch', 'triton', 'numba', 'numpy', 'openai', 'django'}))")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                          env={"PATH": os.environ["PATH"]})
    assert done.stdout.strip() == "[]"


@given(st.lists(st.tuples(
    st.floats(0.5, 4.0), st.floats(0.0, 0.2), st.sampled_from(["champion", "not reviewed", "quarantined"]),
    st.booleans(), st.booleans()), max_size=12))
def test_boards_rank_by_score_and_leave_nothing_out(items: list[tuple[float, float, str, bool, bool]]) -> None:
    rows = [
        BoardRow(team="t", own=True, label=str(index), approval=approval, tier="light", score=score, ratio=score,
                 low=score * 0.99, high=score * 1.01, noise=noise, evaluator_version="1", measured_at=None,
                 suspicious=suspicious, foreign=foreign)
        for index, (score, noise, approval, suspicious, foreign) in enumerate(items)
    ]
    placed = ranked(rows)
    assert sorted(row.label for row in placed) == sorted(row.label for row in rows)
    able = [row for row in placed if row.rank is not None]
    assert placed[: len(able)] == able
    assert [row.rank for row in able] == list(range(1, len(able) + 1))
    assert [row.score for row in able] == sorted((row.score for row in able), reverse=True)
    assert not any(row.foreign or row.approval == "quarantined" for row in able)
    assert all(row.why_unranked for row in placed[len(able):])


def test_findings_of_the_static_check_reach_the_web_side() -> None:
    source = api.baseline_source("rms_norm", "numba").replace(b"import math\n", b"import math\nimport os\n")
    found = api.findings(source, "rms_norm", "numba")
    assert ("import_not_allowed", "block", 4) in {(f.code, f.severity, f.line) for f in found}
    assert api.findings(api.baseline_source("rms_norm", "numba"), "rms_norm", "numba") == ()


@pytest.mark.parametrize(("setting", "check"), [("DEBUG", "site.E001"), ("DEMO", "site.E002")])
def test_debug_and_demo_stay_on_loopback(setting: str, check: str) -> None:
    with override_settings(**{setting: True, "ALLOWED_HOSTS": ["localhost", "127.0.0.1"]}):
        assert check not in [message.id for message in run_checks()]
    with override_settings(**{setting: True, "ALLOWED_HOSTS": ["localhost", "kernels.example.org"]}):
        assert check in [message.id for message in run_checks()]


@pytest.mark.parametrize(("name", "value", "said"), [
    ("KERNELOPT_DEMO", "perhaps", '"KERNELOPT_DEMO" invalid: Not a valid boolean.'),
    ("KERNELOPT_CANARY_EVERY", "x", '"KERNELOPT_CANARY_EVERY" invalid: Not a valid integer.'),
    ("KERNELOPT_SIGN_IN_TRIES", "0", "KERNELOPT_SIGN_IN_TRIES and KERNELOPT_SIGN_IN_MINUTES must be 1"),
    ("KERNELOPT_SIGN_IN_TRIES_IN_ALL", "9", "KERNELOPT_SIGN_IN_TRIES_IN_ALL is below"),
    ("KERNELOPT_SIGN_IN_MINUTES", "0", "KERNELOPT_SIGN_IN_TRIES and KERNELOPT_SIGN_IN_MINUTES must be 1"),
    ("KERNELOPT_SIGN_IN_MINUTES", "1000000000", "KERNELOPT_SIGN_IN_MINUTES is above 10080, a week"),
    ("KERNELOPT_SIGN_IN_MINUTES", "soon", '"KERNELOPT_SIGN_IN_MINUTES" invalid: Not a valid integer.'),
    ("KERNELOPT_PROXIES", "10.0.0.1, 10.0.0.0/33", "'10.0.0.0/33' is neither an address nor a network"),
    ("KERNELOPT_DATABASE_URL", "mysql://u:secret@h/n", "does not start with postgres://"),
    ("KERNELOPT_DATABASE_URL", "secret", "does not start with postgres://"),
    ("KERNELOPT_VAR", "/proc/nowhere", "KERNELOPT_VAR (/proc/nowhere) cannot be used: No such file"),
])
def test_a_setting_that_cannot_be_used_is_said_in_a_sentence(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELOPT_SECRET_KEY", raising=False)
    monkeypatch.setenv(name, value)
    why = env.wrong_setting()
    assert why is not None and said in why and why.endswith(".") and "secret" not in why


def test_proxies_are_believed_only_where_the_site_says_that_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELOPT_ORIGINS", raising=False)
    monkeypatch.delenv("KERNELOPT_PROXIES", raising=False)
    assert env.proxies() == []
    monkeypatch.setenv("KERNELOPT_ORIGINS", "https://kernels.example.org")
    assert env.proxies() == ["127.0.0.1", "::1"]
    monkeypatch.setenv("KERNELOPT_PROXIES", "10.0.0.1, 10.1.0.0/16")
    assert env.proxies() == ["10.0.0.1", "10.1.0.0/16"]


def test_every_setting_of_the_site_is_documented() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"(KERNELOPT_\w+)"', Path(env.__file__).read_text("utf-8")))
    told = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert len(read) > 15 and not [name for name in read if f"`{name}`" not in told]


def test_what_postgresql_needs_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_DATABASE_URL", "postgres://u:secret@h/n")
    monkeypatch.setattr(env, "find_spec", lambda package: None)
    why = env.wrong_setting() or ""
    (named,) = re.findall(r"-r (requirements[-\w]*\.txt)", why)
    assert re.search(r"^psycopg\[binary\]>=[\d.]+,<\d+ +# ", (ROOT / named).read_text("utf-8"), re.MULTILINE)
    assert "psycopg" not in (ROOT / "requirements.txt").read_text("utf-8") and "secret" not in why


def test_the_command_line_says_it_without_a_traceback_and_usual_settings_pass(tmp_path: Path) -> None:
    good = {**os.environ, "KERNELOPT_VAR": str(tmp_path)}
    for more, code in (({"KERNELOPT_DEMO": "perhaps"}, 1), ({}, 0)):
        done = subprocess.run([sys.executable, "manage.py", "version"], cwd=ROOT, env=good | more, text=True,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == code and "Traceback" not in done.stderr
        assert ("KERNELOPT_DEMO" in done.stderr) == bool(code)
