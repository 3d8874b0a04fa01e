"""Fetch the front-end libraries that the pages serve and write them under ``static/vendor``.

Run by hand when a version below changes; the result is committed, so that neither installation nor
serving needs npm. Plotly comes as the strict bundle: it works without ``unsafe-eval``. Its own
stylesheet, which it would otherwise write into a ``<style>`` element, is taken out of the bundle and
saved as a file, because the content security policy allows no inline styles.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "static" / "vendor"


@dataclass(frozen=True, slots=True)
class Library:
    """One npm package and the file of it that is served; ``licence`` is the licence file's name in the package."""

    package: str
    version: str
    source: str
    target: str
    licence: str
    spdx: str
    why: str


LIBRARIES = (
    Library(
        "plotly.js-strict-dist-min",
        "4.1.1",
        "plotly-strict.min.js",
        "plotly-strict.min.js",
        "LICENSE",
        "MIT",
        "draws the figures built in Python; the version that the Python package plotly 7.1 ships",
    ),
    Library(
        "htmx.org",
        "2.0.10",
        "dist/htmx.min.js",
        "htmx.min.js",
        "LICENSE",
        "0BSD",
        "refreshes live regions and the goal preview",
    ),
    Library(
        "idiomorph",
        "0.8.0",
        "dist/idiomorph-ext.min.js",
        "idiomorph-ext.min.js",
        "LICENSE",
        "0BSD",
        "morphs refreshed regions in place: focus, scroll and typed text stay",
    ),
)


def fetch(library: Library, folder: Path) -> Path:
    """Download and unpack one package; returns its root."""
    done = subprocess.run(
        ["npm", "pack", f"{library.package}@{library.version}", "--silent"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    archive = folder / done.stdout.strip().splitlines()[-1]
    target = folder / library.package
    with tarfile.open(archive) as bundle:
        bundle.extractall(target, filter="data")
    return target / "package"


def plotly_stylesheet(bundle: str) -> str:
    """The rules that plotly.js would insert at run time, as a stylesheet.

    In the bundle they are one object literal whose keys hold the placeholders ``X`` (the plot) and
    ``Y`` (the notifier).

    Raises:
        ValueError: when the object is not found: the bundle changed its shape.
    """
    found = re.search(r'\{("X,X div":.*?)\}', bundle)
    if found is None:
        raise ValueError("The style rules were not found in the plotly bundle. Look for addStyleRule in it.")
    pairs = re.findall(r"""(["'])(.*?)\1:(["'])(.*?)\3(?:,|$)""", found.group(1))
    lines = []
    for _, selector, _, body in pairs:
        name = selector.replace("X", ".js-plotly-plot .plotly").replace("Y", ".plotly-notifier")
        lines.append(f"{name} {{ {body} }}")
    return "\n".join(lines) + "\n"


def table(rows: list[tuple[Library, int]]) -> str:
    """VENDOR.md: what is served, from where, under which licence."""
    lines = [
        "# Vendored front-end libraries",
        "",
        "Written by `python scripts/vendor_frontend.py` (needs npm); never edited by hand.",
        "",
        "| file | package | version | licence | size | why |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for library, size in rows:
        lines.append(
            f"| `{library.target}` | {library.package} | {library.version} | {library.spdx} "
            f"| {size / 1024:,.0f} KiB | {library.why} |"
        )
    lines += [
        "",
        "`plotly.css` holds the rules that plotly.js would otherwise insert into a `<style>` element. "
        "Licence texts are beside each file as `<file>.LICENSE`.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Fetch everything and write it."""
    VENDOR.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for library in LIBRARIES:
            package = fetch(library, Path(name))
            shutil.copyfile(package / library.source, VENDOR / library.target)
            shutil.copyfile(package / library.licence, VENDOR / f"{library.target}.LICENSE")
            rows.append((library, (VENDOR / library.target).stat().st_size))
    bundle = (VENDOR / "plotly-strict.min.js").read_text("utf-8")
    (VENDOR / "plotly.css").write_text(plotly_stylesheet(bundle), "utf-8")
    (VENDOR / "VENDOR.md").write_text(table(rows), "utf-8")
    for library, size in rows:
        print(f"{library.target:28} {library.version:8} {size / 1024:8,.0f} KiB")


if __name__ == "__main__":
    main()
