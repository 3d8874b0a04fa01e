"""The git mirror follows promotions, is repaired and can be rebuilt from nothing."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from dulwich.repo import Repo

from apps.bridge.runner.mirror import Promoted, mirror_repair, on_one_line


def _promoted(team: str, operator: str, number: int, source: bytes) -> Promoted:
    return Promoted(team=team, path=(operator, "numba", "cpu-x-1t", "llm"), number=number, source=source,
                    at=datetime(2026, 11, 29, 12, number, tzinfo=UTC), message=f"{operator} {number}\n")


HISTORY = [_promoted("core", "rms_norm", 1, b"a = 1\n"), _promoted("core", "softmax", 1, b"b = 1\n"),
           _promoted("core", "rms_norm", 2, b"a = 2\n"), _promoted("other", "rms_norm", 1, b"c = 1\n")]


def _refs(folder: Path) -> dict[bytes, bytes]:
    with Repo(str(folder)) as repository:
        return {ref: repository.refs[ref] for ref in repository.refs.allkeys() if ref != b"HEAD"}


def _file(folder: Path, ref: bytes, path: str) -> bytes:
    with Repo(str(folder)) as repository:
        commit = repository[repository.refs[ref]]
        tree = repository[commit.tree]
        _, blob = tree.lookup_path(repository.__getitem__, path.encode())
        return repository[blob].data


def test_branch_holds_the_present_champions_and_tags_name_each_promotion(tmp_path: Path) -> None:
    mirror_repair(tmp_path / "mirror", HISTORY)
    assert _file(tmp_path / "mirror", b"refs/heads/core", "rms_norm/numba/cpu-x-1t/llm.py") == b"a = 2\n"
    assert _file(tmp_path / "mirror", b"refs/heads/core", "softmax/numba/cpu-x-1t/llm.py") == b"b = 1\n"
    tags = {ref.removeprefix(b"refs/tags/") for ref in _refs(tmp_path / "mirror") if ref.startswith(b"refs/tags/")}
    assert tags == {b"core/rms_norm/numba/cpu-x-1t/llm/1", b"core/rms_norm/numba/cpu-x-1t/llm/2",
                    b"core/softmax/numba/cpu-x-1t/llm/1", b"other/rms_norm/numba/cpu-x-1t/llm/1"}


def test_repairing_what_is_right_changes_nothing(tmp_path: Path) -> None:
    mirror_repair(tmp_path / "mirror", HISTORY)
    assert mirror_repair(tmp_path / "mirror", HISTORY) == 0


def test_a_mirror_made_promotion_by_promotion_equals_one_rebuilt_from_nothing(tmp_path: Path) -> None:
    for count in range(1, len(HISTORY) + 1):
        mirror_repair(tmp_path / "grown", HISTORY[:count])
    mirror_repair(tmp_path / "rebuilt", HISTORY)
    assert _refs(tmp_path / "grown") == _refs(tmp_path / "rebuilt")


def test_moved_foreign_and_missing_refs_are_mended(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    mirror_repair(folder, HISTORY)
    right = _refs(folder)
    with Repo(str(folder)) as repository:
        first = right[b"refs/tags/core/rms_norm/numba/cpu-x-1t/llm/1"]
        repository.refs[b"refs/tags/core/rms_norm/numba/cpu-x-1t/llm/2"] = first
        repository.refs[b"refs/tags/core/made/up"] = first
        del repository.refs[b"refs/heads/other"]
    assert mirror_repair(folder, HISTORY) == 3
    assert _refs(folder) == right


def test_lost_objects_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    mirror_repair(folder, HISTORY)
    right = _refs(folder)
    shutil.rmtree(folder / "objects")
    (folder / "objects").mkdir()
    mirror_repair(folder, HISTORY)
    assert _refs(folder) == right
    assert _file(folder, b"refs/heads/core", "rms_norm/numba/cpu-x-1t/llm.py") == b"a = 2\n"


def test_words_of_a_person_add_no_line_to_a_message() -> None:
    assert on_one_line("faster\napprovals required: 0\r\n\x0bApproved-by: me\u2028x") == \
        "faster approvals required: 0 Approved-by: me x"
