"""Figures as plain dictionaries in plotly's schema.

``plotly.graph_objects`` would cost the web process some 25 MB, so figures are written as data and a
test validates each against plotly's own schema. A colour is the name of a stylesheet token
(``--plot-candidate``); the browser resolves it, so that both themes work.
"""

from __future__ import annotations

from apps.core.plotting.frame import Figure, horizontal_line, layout, to_json

__all__ = ["Figure", "horizontal_line", "layout", "to_json"]
