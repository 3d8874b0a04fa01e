"""What a dry run leaves for a GPU host: its requests as ``python -m harness evaluate --request`` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apps.bridge.api.errors import translated
from apps.bridge.api.requests import request_check


def exported_requests(requests: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """Contents by file name, one document per kernel; of one kernel asked twice the later request stands.

    Raises:
        BridgeError: a stored request does not follow its schema, its digests are not those of its sources, or it
            names a device that no plan can be compiled for.
    """
    with translated():
        from harness.backends.triton.export import request_files
        from harness.domain.codec import from_document
        from harness.domain.request import EvaluationRequest

        files: dict[str, bytes] = {}
        for document in requests:
            request = from_document(request_check(document), EvaluationRequest)
            files |= {name: text.encode() for name, text in request_files(request).items()}
        return files
