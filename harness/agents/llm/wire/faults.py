"""What went wrong, told apart by what can be done: wait, ask without a parameter, shorten, or give up. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal

Cure = Literal["wait", "without", "shorten", "none", "cut", "filtered"]
"""``wait``: it may heal; ``without``: leave a parameter out; ``shorten``: the question is too long; ``none``: it will
not heal; ``cut``: the answer began and broke off or made no sense; ``filtered``: the endpoint's filter refused it."""
LONGEST_TEXT = 600
HEALING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 509, 520, 521, 522, 523, 524, 525, 527, 529, 530})
NO_SUCH_API = frozenset({404, 405, 501})
SPENT = re.compile(r"insufficient_quota|insufficient.{0,12}(balance|funds|credit)|exceeded your current quota|"
                   r"billing|credit balance is too low|payment required", re.I)
OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|model_max_prompt_tokens_exceeded|context.window|"
    r"(maximum|max|model'?s?|available|supported) (input )?context (length|size|limit)|"
    r"exceeds? (the )?(available |maximum |model'?s? )*(context|input|prompt|sequence)|"
    r"(prompt|input|request|messages?|conversation) (is|are|was) too (long|large)|too many (input |prompt )?tokens|"
    r"too large for model with \d+ maximum|longer than the (model'?s?|maximum|context)|"
    r"input (token )?(count|length).{0,40}(exceed|must be|larger|longer)|prompt contains \d+ tokens|"
    r"reduce the (length|size) of (the|your) (messages?|prompt|input)|`?inputs`? tokens \+|"
    r"(prompt|input|sequence)[^.]{0,60}(longer|more|greater) than[^.]{0,40}(n_ctx|max_model_len|context|tokens)", re.I)
TOO_MUCH_ASKED = re.compile(r"max_(completion_|output_)?tokens['`\"]?( or ['`\"]?max_\w+['`\"]?)? "
                            r"(is|must|=|:|>)", re.I)
NO_TOOLS = re.compile(r"(not|n't) support(ed)?[^.]{0,30}(tool|function.call)|enable-auto-tool-choice|tool-call-parser|"
                      r"(tools?|tool use|function.call\w*)[^.]{0,40}(not|n't) (be )?(support|enabled|available|allow)",
                      re.I)
NO_ROLES = re.compile(r"system (role|message|prompt)s?( is| are)? (not|un)\s?(be )?support|roles must alternate|"
                      r"only user(,| and) (assistant|model)|"
                      r"(unknown|unsupported|invalid|unexpected) (message )?role", re.I)
REFUSING = re.compile(r"support|unknown|unrecogni[sz]ed|unexpected|not (allowed|permitted|valid|available|implemented)|"
                      r"extra|invalid|deprecated|must be|only|cannot|can't|forbidden|not be|at most|too (large|high)",
                      re.I)
FILTERED = re.compile(r"content_filter|content_policy_violation|content management policy|responsible ai", re.I)


@dataclass(frozen=True, slots=True)
class Fault:
    """An asking that brought no answer. ``parameter`` is what to leave out, ``lasting`` whether always, ``after_s`` how
    long the endpoint asks to wait; ``no_api`` says that the address itself is unknown there. No exception and no
    request is kept: both hold the key."""

    cure: Cure
    text: str
    status: int | None = None
    after_s: float | None = None
    parameter: str = ""
    no_api: bool = False
    lasting: bool = True


def from_status(status: int, headers: Mapping[str, str], body: Any, sent: Collection[str], now: float) -> Fault:
    """The fault of an HTTP status. ``sent`` are the optional parameters of the request, ``now`` seconds since 1970."""
    text = message(body)
    fault = Fault("none", f"HTTP {status}: {text}" if text else f"HTTP {status} without a word", status)
    whole = f"{text} {_plain(body)}"
    if 300 <= status < 400:
        where = re.sub(r"[?#].*", "", headers.get("location", ""))
        return replace(fault, text=f"HTTP {status}, a redirect to {where or 'nowhere'}, which is not followed because "
                                "the key would go with it; put the final address into the file of endpoints")
    if status in (400, 413, 422, 500) and OVERFLOW.search(whole) and not (status != 413 and _limit_only(text)):
        return replace(fault, cure="shorten")
    if status in (400, 422) or (status in (404, 500, 501) and (NO_TOOLS.search(text) or NO_ROLES.search(text))):
        parameter = refused_parameter(text, body, sent)
        if parameter:
            # Too much room asked for beside a long question: that is no trait of the model.
            return replace(fault, cure="without", parameter=parameter, lasting=not OVERFLOW.search(whole))
        if FILTERED.search(whole):
            return replace(fault, cure="filtered")
    if status in (402, 403, 429) and SPENT.search(whole):
        return fault
    if status in HEALING or status >= 502:
        return replace(fault, cure="wait", after_s=retry_after(headers, now))
    return replace(fault, no_api=status in NO_SUCH_API)


def from_body(error: Any, sent: Collection[str], begun: bool) -> Fault:
    """The fault that an answer with status 200 reports in its body or in the middle of its stream."""
    code = str(error.get("code") or error.get("status")) if isinstance(error, Mapping) else ""
    status = int(code) if re.fullmatch(r"[45]\d\d", code) else None
    text, whole = message({"error": error}), _plain(error)
    if status is not None:
        fault = from_status(status, {}, {"error": error}, () if begun else sent, 0.0)
    elif OVERFLOW.search(f"{text} {whole}"):
        fault = Fault("shorten", text)
    elif FILTERED.search(whole):
        fault = Fault("filtered", text)
    elif SPENT.search(whole) or re.search(r"invalid_request|authentication|permission|not_found", whole, re.I):
        fault = Fault("none", text)
    else:
        fault = Fault("wait", text)
    said = f"the answer carried an error: {text or 'without a word'}"
    return replace(fault, text=said, cure="cut" if begun and fault.cure == "wait" else fault.cure)


def refused_parameter(text: str, body: Any, sent: Collection[str]) -> str:
    """Which of the optional parameters the endpoint will not take, empty where it complains of something else."""
    if "tools" in sent and NO_TOOLS.search(text):
        return "tools"
    if "roles" in sent and NO_ROLES.search(text):
        return "roles"
    named = _named(body)
    for name in sorted(sent, key=len, reverse=True):
        if any(item == name or item.startswith((f"{name}.", f"{name}[")) for item in named):
            return _finer(name, text, sent)
    if REFUSING.search(text):
        for name in sorted(sent, key=len, reverse=True):
            if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text):
                return _finer(name, text, sent)
    return ""


def _finer(name: str, text: str, sent: Collection[str]) -> str:
    """A complaint about ``tools[0].function.strict`` is one about ``strict`` alone."""
    return "strict" if name == "tools" and "strict" in text and "strict" in sent else name


def _named(body: Any) -> list[str]:
    """Names in the machine-readable part of an error: ``param``, or the places of a validation error."""
    found: list[str] = []
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        if isinstance(error.get("param"), str):
            found.append(error["param"])
        details = error.get("detail")
        for item in details if isinstance(details, list) else []:
            places = item.get("loc") if isinstance(item, Mapping) else None
            if isinstance(places, list):
                found.append(".".join(str(place) for place in places if place != "body"))
    return found


def _limit_only(text: str) -> bool:
    """Whether only the room for the answer is too large, not the question."""
    return bool(TOO_MUCH_ASKED.search(text))


def message(body: Any) -> str:
    """The sentence in an error's body, whatever its form, shortened."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        for key in ("message", "detail", "msg", "error", "title"):
            if error.get(key):
                error = error[key]
                break
    text = error if isinstance(error, str) else _plain(error)
    text = " ".join(re.sub(r"<[^<>]{0,200}>", " ", text).split())
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " ..."


def _plain(document: Any) -> str:
    return "" if document is None else json.dumps(document, ensure_ascii=False, default=str)[:8_000]


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that an endpoint asks to wait, ``None`` where it does not say or says no sense."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", value):
            return float(value) * scale
        if value and scale == 1.0:
            try:
                return max(0.0, parsedate_to_datetime(value).timestamp() - now)
            except (ValueError, TypeError, OverflowError):
                return None
    return None
