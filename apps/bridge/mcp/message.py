"""One JSON-RPC message out of the bytes of a stranger, before any library looks at it."""

from __future__ import annotations

import json
from typing import Any

from harness.domain import strict_json

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
BODY_LIMIT = 512 * 1024  # a source of 64 KiB is at most 384 KiB when every byte of it is escaped
DEPTH_LIMIT = 24
ID_LIMIT = 128
SAFE_INTEGER = 2**53


class BadMessage(Exception):
    """Not a message that this server reads; ``code`` is JSON-RPC's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def read_message(body: bytes) -> bytes:
    """The message in its plainest form, so that every reader behind this one reads the same: one object of bounded
    depth without doubled keys, with an id of a right type or without one.

    Raises:
        BadMessage: it is no such message.
    """
    try:
        message = strict_json.loads(body.decode("utf-8"))
        plain = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise BadMessage(PARSE_ERROR, "The body is not JSON in UTF-8, of reasonable depth, with finite "
                                      "numbers, whole characters and every key once.") from error
    if isinstance(message, list):
        raise BadMessage(INVALID_REQUEST, "Batches are not taken: send one message per request.")
    if not isinstance(message, dict):
        raise BadMessage(INVALID_REQUEST, "A message is a JSON object.")
    if _too_deep(message):
        raise BadMessage(INVALID_REQUEST, f"The message is nested deeper than {DEPTH_LIMIT} levels.")
    if message.get("jsonrpc") != "2.0":
        raise BadMessage(INVALID_REQUEST, "The member jsonrpc must be the string 2.0.")
    if not isinstance(message.get("method"), str):
        raise BadMessage(INVALID_REQUEST, "This server takes requests and notifications; the member method is missing "
                                          "or no string.")
    if not isinstance(message.get("params", {}), dict):
        raise BadMessage(INVALID_REQUEST, "The member params must be an object.")
    if "id" in message and not _right_id(message["id"]):
        raise BadMessage(INVALID_REQUEST, f"The id must be an integer below 2^53 or a string of at most {ID_LIMIT} "
                                          "characters.")
    return plain


def _right_id(given: Any) -> bool:
    if isinstance(given, str):
        return len(given) <= ID_LIMIT
    return isinstance(given, int) and not isinstance(given, bool) and abs(given) < SAFE_INTEGER


def _too_deep(message: Any) -> bool:
    level = [message]
    for _ in range(DEPTH_LIMIT):
        level = [child for item in level if isinstance(item, dict | list)
                 for child in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return False
    return True
