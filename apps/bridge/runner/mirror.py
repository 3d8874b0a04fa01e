"""The git mirror: a bare repository derived from Promotion rows, repaired at every start, rebuildable from nothing.

Branch ``<team>`` holds the champions of a team, one file per slot, one commit per promotion; a tag
``<team>/<operator>/<backend>/<hardware>/<workload>/<n>`` names each promotion. Times, names and messages come from the
rows alone, so that the same rows always give the same commits. Nothing is ever read back from here.
"""

from __future__ import annotations

import calendar
import fcntl
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dulwich.objects import Blob, Commit, ObjectID, Tag, Tree
from dulwich.refs import Ref
from dulwich.repo import Repo

AUTHOR = b"KernelOpt <mirror@localhost>"
HEADS, TAGS = b"refs/heads/", b"refs/tags/"
FILE_MODE, FOLDER_MODE = 0o100644, 0o040000
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Promoted:
    """One promotion as the mirror tells it; ``path`` is the slot's folder and file without suffix."""

    team: str
    path: tuple[str, ...]
    number: int  # counted within the slot, from 1
    source: bytes
    at: datetime
    message: str


def promotions_in_order() -> Iterator[Promoted]:
    """All promotions, oldest first."""
    from apps.kernels.models import Promotion

    numbers: dict[int, int] = defaultdict(int)
    rows = Promotion.objects.select_related(
        "slot__team", "slot__operator", "slot__hardware", "kernel", "by").order_by("id")
    for row in rows:
        slot = row.slot
        numbers[slot.pk] += 1
        lines = [f"{slot.operator.name}: {row.kernel.short} becomes champion", "",
                 f"kernel: {row.kernel_id}", f"previous: {row.previous_id or 'none'}", f"kind: {row.kind}",
                 f"gate tier: {row.gate_tier}", f"approvals required: {row.required_approvals}",
                 f"verdict: {row.verdict_id}"]
        if row.request_id:
            lines.append(f"review: R-{row.request_id}")
        if row.reason:
            lines.append(f"reason: {on_one_line(row.reason)}")
        yield Promoted(team=slot.team.slug, path=(slot.operator.name, slot.backend, slot.hardware.name, slot.workload),
                       number=numbers[slot.pk], source=bytes(row.kernel.source), at=row.at,
                       message="\n".join(lines) + "\n")


def on_one_line(words: str) -> str:
    """A person's words as one line of a message: they cannot add another one, such as a review or approvals."""
    return " ".join(words.split())


def mirror_repair(folder: Path, promotions: Iterable[Promoted] | None = None) -> int:
    """Make branches and tags say what the rows say; answers how many refs had to be set or removed."""
    with _locked(folder):
        repository = Repo(str(folder)) if (folder / "objects").is_dir() else Repo.init_bare(str(folder), mkdir=True)
        with repository:
            wanted = _write_objects(repository, promotions_in_order() if promotions is None else promotions)
            changed = 0
            for ref in [ref for ref in repository.refs.allkeys() if ref.startswith((HEADS, TAGS))]:
                if ref not in wanted:
                    repository.refs.remove_if_equals(ref, None)
                    changed += 1
            for ref, identity in wanted.items():
                if repository.refs.read_loose_ref(ref) != identity:
                    repository.refs.set_if_equals(ref, None, identity)
                    changed += 1
    return changed


def _write_objects(repository: Repo, promotions: Iterable[Promoted]) -> dict[Ref, ObjectID]:
    """Store the commits and tags of all promotions; the refs they need."""
    store = repository.object_store
    files: dict[str, dict[tuple[str, ...], ObjectID]] = defaultdict(dict)
    tips: dict[str, ObjectID] = {}
    refs: dict[Ref, ObjectID] = {}
    for promoted in promotions:
        blob = Blob.from_string(promoted.source)
        store.add_object(blob)
        files[promoted.team][(*promoted.path[:-1], promoted.path[-1] + ".py")] = blob.id
        commit = _commit(promoted, _tree(repository, files[promoted.team]), tips.get(promoted.team))
        store.add_object(commit)
        tips[promoted.team] = commit.id
        name = "/".join((promoted.team, *promoted.path, str(promoted.number))).encode()
        tag = _tag(promoted, name, commit)
        store.add_object(tag)
        refs[Ref(TAGS + name)] = tag.id
        refs[Ref(HEADS + promoted.team.encode())] = commit.id
    return refs


def _tree(repository: Repo, files: dict[tuple[str, ...], ObjectID]) -> ObjectID:
    tree = Tree()
    folders: dict[str, dict[tuple[str, ...], ObjectID]] = defaultdict(dict)
    for path, blob in files.items():
        if len(path) == 1:
            tree.add(path[0].encode(), FILE_MODE, blob)
        else:
            folders[path[0]][path[1:]] = blob
    for name, inside in folders.items():
        tree.add(name.encode(), FOLDER_MODE, _tree(repository, inside))
    repository.object_store.add_object(tree)
    return tree.id


def _commit(promoted: Promoted, tree: ObjectID, parent: ObjectID | None) -> Commit:
    commit = Commit()
    commit.tree, commit.parents = tree, [parent] if parent else []
    commit.author = commit.committer = AUTHOR
    commit.author_time = commit.commit_time = calendar.timegm(promoted.at.utctimetuple())
    commit.author_timezone = commit.commit_timezone = 0
    commit.encoding, commit.message = b"UTF-8", promoted.message.encode()
    return commit


def _tag(promoted: Promoted, name: bytes, commit: Commit) -> Tag:
    tag = Tag()
    tag.name, tag.tagger, tag.message = name, AUTHOR, promoted.message.encode()
    tag.tag_time, tag.tag_timezone = commit.commit_time, 0
    tag.object = (Commit, commit.id)
    return tag


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two processes never repair at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
