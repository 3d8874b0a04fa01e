"""Leaderboards: who leads, and can I believe it?"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse

from apps.bridge import api
from apps.core.errors import NotFound
from apps.core.paging import refusals, show
from apps.core.plotting import to_json
from apps.imports.selectors import imported_keys
from apps.leaderboards import plots, selectors
from apps.leaderboards.ranking import BoardRow
from apps.leaderboards.shapes import shape_table


def closed(request: HttpRequest) -> bool:
    """Whether this caller has to sign in first."""
    return not (request.user.is_authenticated or settings.PUBLIC_BOARDS)


@refusals
def listing(request: HttpRequest) -> HttpResponse:
    """All boards with at least one campaign."""
    if closed(request):
        return redirect_to_login(request.get_full_path())
    return show(request, "leaderboards/list.html", {
        "boards": selectors.boards(request.user), "imported": imported_keys(request.user)})


@refusals
def board_page(request: HttpRequest, operator: str) -> HttpResponse:
    """One board: operator x backend x hardware x workload, within one environment class."""
    if closed(request):
        return redirect_to_login(request.get_full_path())
    keys = [key for key in selectors.boards(request.user) if key.operator == operator]
    chosen = choose(request, keys)
    if chosen is None:
        return show(
            request, "leaderboards/empty.html", {"operator": operator, "boards": selectors.boards(request.user),
                                                 "imported": imported_keys(request.user, operator__name=operator)}
        )
    board = selectors.board(
        request.user,
        operator=operator,
        backend=chosen.backend,
        hardware=chosen.hardware,
        workload=chosen.workload,
        environment_class=request.GET.get("class") or None,
    )
    unranked = request.GET.get("unranked") != "no"
    rows = [row for row in board.rows if unranked or row.rank is not None or row.library]
    return show(
        request,
        "leaderboards/board.html",
        {
            "board": board,
            "rows": rows,
            "keys": keys,
            "chosen": chosen,
            "boards": selectors.boards(request.user),
            "imported": imported_keys(request.user, operator=board.operator),
            "unranked": unranked,
            "any_drifted": any(row.drifted for row in rows),
            "ranked_count": sum(row.rank is not None for row in board.rows),
            "by_shape": shape_table(rows, weights_of(board)),
            "figure": to_json(
                plots.dots([dot_of(row) for row in rows if row.ratio is not None], "over the baseline")
            ),
        },
    )


def weights_of(board: selectors.Board) -> dict[str, float]:
    """The board's shapes with their weights, heaviest first."""
    workload = next((one for one in api.operator(board.operator.name).workloads if one.name == board.workload), None)
    points = sorted(workload.shapes.get(board.backend, ()) if workload else (), key=lambda point: -point["weight"])
    return {point["label"]: point["weight"] for point in points}


def choose(request: HttpRequest, keys: list[selectors.BoardKey]) -> selectors.BoardKey | None:
    """The board that the address names, the first one of the operator otherwise.

    Raises:
        NotFound: the address names one that does not exist.
    """
    asked = {name: request.GET[name] for name in ("backend", "hardware", "workload") if request.GET.get(name)}
    found = next((key for key in keys if all(getattr(key, name) == value for name, value in asked.items())), None)
    if asked and found is None and keys:
        raise NotFound("There is no such board. The leaderboards page lists those that exist.")
    return found


def dot_of(row: BoardRow) -> plots.BoardDot:
    """A row as the plot marks it."""
    reference = row.library or row.label == "baseline"
    kind = "library" if reference else "unranked" if row.rank is None else "own" if row.own else "champion"
    label = f"{row.rank or '–'} {row.team}, {row.label}".replace("<", "‹")  # plotly reads tags in texts
    return plots.BoardDot(label, row.ratio or 0.0, row.low, row.high, kind, row.drifted)
