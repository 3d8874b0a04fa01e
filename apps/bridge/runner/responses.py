"""The evaluator's answer as the web side accepts it: schema, size, and that it answers what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain import strict_json
from harness.domain.codec import check_schema, from_document
from harness.domain.digest import digest_bytes
from harness.domain.errors import DocumentError
from harness.domain.samples import Samples
from harness.domain.verdict import Verdict

VERDICT_LIMIT = 4 * 1024 * 1024
SAMPLES_LIMIT = 32 * 1024 * 1024


class ResponseInvalid(Exception):
    """The evaluator gave no usable verdict; an infrastructure fault, never charged to a candidate."""


@dataclass(frozen=True, slots=True)
class Response:
    """A verdict document and, where something was timed, the exact bytes of its samples document."""

    verdict: dict[str, Any]
    samples: bytes | None


def read_response(path: Path, request: dict[str, Any]) -> Response:
    """Read ``path`` and ``<path>.samples.json`` beside it, and check them against ``request``.

    Raises:
        ResponseInvalid: missing, too large, not following the schema, or about another kernel, operator or backend.
    """
    document = _load(path, VERDICT_LIMIT, "verdict")
    try:
        check_schema(document, "verdict")
        from_document(document, Verdict)
    except (DocumentError, ValueError) as error:
        raise ResponseInvalid(f"The verdict cannot be read: {error}") from error
    _check_subject(document, request)
    return Response(document, _read_samples(path, document))


def _check_subject(verdict: dict[str, Any], request: dict[str, Any]) -> None:
    for name, said, asked in (("kernel", verdict["kernel"], request["candidate"]["digest"]),
                              ("operator", verdict["operator"], request["operator"]),
                              ("backend", verdict["backend"], request["backend"])):
        if said != asked:
            raise ResponseInvalid(f"The verdict is about {name} {said!r}, but {asked!r} was asked. It was not kept.")


def _read_samples(path: Path, verdict: dict[str, Any]) -> bytes | None:
    if verdict.get("samples") is None:
        if verdict["timing"] is not None:
            raise ResponseInvalid("The verdict shows times without the samples they come from. It was not kept.")
        return None
    data = _read(path.with_name(path.name + ".samples.json"), SAMPLES_LIMIT, "samples document")
    if str(verdict["samples"]) != "blob:" + digest_bytes(data):
        raise ResponseInvalid("The samples are not the ones that the verdict names by digest. Neither was kept.")
    try:
        samples = strict_json.loads(data)
        check_schema(samples, "samples")
        from_document(samples, Samples)
    except (DocumentError, ValueError, RecursionError) as error:
        raise ResponseInvalid(f"The samples cannot be read: {error}") from error
    return data


def _read(path: Path, limit: int, what: str) -> bytes:
    try:
        size = path.stat().st_size
        if size > limit:
            raise ResponseInvalid(f"The {what} has {size} bytes, more than the {limit} allowed. It was not read.")
        return path.read_bytes()
    except OSError:
        raise ResponseInvalid(f"The evaluator left no {what}.") from None


def _load(path: Path, limit: int, what: str) -> Any:
    try:
        return strict_json.loads(_read(path, limit, what))
    except (ValueError, RecursionError) as error:
        raise ResponseInvalid(f"The {what} is not JSON: {error}") from None
