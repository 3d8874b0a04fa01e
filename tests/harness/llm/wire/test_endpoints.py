"""The file of endpoints: what it may say, and an error that names file, table and key for everything else."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from harness.agents.llm.endpoints import Endpoint, EndpointsError, key_variables, load_endpoints
from harness.agents.llm.scripted.personas import PERSONAS
from harness.domain.turn import Usage

GOOD = """
[endpoint.local]
url = "http://127.0.0.1:8000/v1/"
models = ["*"]

[endpoint.hosted]
url = "https://models.example.org/v1"
key_variable = "HOSTED_KEY"
api = "auto"
models = [{name = "big-1", context_tokens = 200000, efforts = ["low", "high"]}, "small"]
connect_s = 5
parallel = 2

[endpoint.hosted.price.big-1]
input = 2.0
cached = 0.5
output = 10
currency = "USD"
date = "2026-11-29"
"""


def load(tmp_path, text):
    path = tmp_path / "endpoints.toml"
    path.write_text(text, "utf-8")
    return load_endpoints(path)


def test_a_file(tmp_path):
    endpoints = load(tmp_path, GOOD)
    local, hosted = endpoints["local"], endpoints["hosted"]
    assert (local.url, local.key_variable, local.api, local.lists_models) == ("http://127.0.0.1:8000/v1", None, "chat",
                                                                              True)
    assert (hosted.api, hosted.connect_s, hosted.parallel, hosted.lists_models) == ("auto", 5.0, 2, False)
    assert hosted.facts("big-1").efforts == ("low", "high")
    assert hosted.facts("other") is None
    assert local.facts("anything").name == "anything"
    assert key_variables(endpoints) == ("HOSTED_KEY",)


def test_a_price(tmp_path):
    price = load(tmp_path, GOOD)["hosted"].facts("big-1").price
    assert price.cost(Usage(1_000_000, 100_000, 400_000)) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 1.0)
    assert (price.currency, price.date) == ("USD", "2026-11-29")


def test_no_file_is_no_endpoint(tmp_path):
    assert load_endpoints(tmp_path / "absent.toml") == {}


@pytest.mark.parametrize(("old", "new", "named"), [
    ('"http://127.0.0.1:8000/v1/"', '"ftp://x/v1"', "[endpoint.local]: url"),
    ('"http://127.0.0.1:8000/v1/"', '"https://me:hunter2@host/v1"', "[endpoint.local]: url"),
    ('"http://127.0.0.1:8000/v1/"', '"https://host/v1?key=hunter2"', "[endpoint.local]: url"),
    ('"http://127.0.0.1:8000/v1/"', '"http://[::1"', "[endpoint.local]: url"),
    ('"http://127.0.0.1:8000/v1/"', "7", "[endpoint.local]: url"),
    ('models = ["*"]', "models = []", "[endpoint.local]: models"),
    ('models = ["*"]', 'models = ["a", "a"]', "[endpoint.local]: models"),
    ('models = ["*"]', "models = [7]", "[endpoint.local] models"),
    ('"HOSTED_KEY"', '"sk-hunter2-the-key-itself"', "[endpoint.hosted]: key_variable"),
    ('api = "auto"', 'api = "soap"', "[endpoint.hosted]: api"),
    ("connect_s = 5", "connect_s = 0", "[endpoint.hosted]: connect_s"),
    ("connect_s = 5", "connect_s = nan", "[endpoint.hosted]: connect_s"),
    ("connect_s = 5", 'conect_s = "hunter2"', "[endpoint.hosted]: conect_s"),
    ("parallel = 2", "parallel = 1.5", "[endpoint.hosted]: parallel"),
    ("parallel = 2", "parallel = true", "[endpoint.hosted]: parallel"),
    ("price.big-1", "price.big-2", "[endpoint.hosted]: price.big-2"),
    ('"USD"', '"dollars"', 'price."big-1"]: currency'), ('"2026-11-29"', '"today"', 'price."big-1"]: date'),
    ("input = 2.0", "input = -1", 'price."big-1"]: input'), ("input = 2.0\n", "", 'price."big-1"]: input'),
    ("context_tokens = 200000", "context_tokens = 1", "context_tokens"),
    ("[endpoint.local]", "[endpoint.'lo cal']", "[endpoint.lo cal]: name"),
    ("[endpoint.local]", "[endpoints.local]", "the file: endpoints"), ("[endpoint.local]", "[endpoint.local", "TOML")])
def test_an_error_names_its_place_and_shows_no_value(tmp_path, old, new, named):
    assert old in GOOD
    with pytest.raises(EndpointsError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert named in caught.value.text and "endpoints.toml" in caught.value.text
    assert "hunter2" not in caught.value.text


def test_bytes_that_are_no_text_and_files_that_are_none(tmp_path):
    (tmp_path / "endpoints.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "endpoints.toml", tmp_path):
        with pytest.raises(EndpointsError):
            load_endpoints(path)


def test_reading_the_file_loads_no_openai():
    code = "import sys, harness.agents.llm.endpoints; sys.exit('openai' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_examples_of_the_documentation_are_right(tmp_path):
    document = (Path(__file__).parents[4] / "docs" / "endpoints.md").read_text("utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", document, re.DOTALL)
    known = {name: one for block in blocks for name, one in load(tmp_path, block).items()}
    assert set(known) == {"local", "hosted", "trial"}
    assert {model.name for model in known["trial"].models} == set(PERSONAS)
    named = set(re.findall(r"^(\w+) =", document, re.MULTILINE))
    assert {field.name for field in fields(Endpoint)} - {"name", "models"} <= named
