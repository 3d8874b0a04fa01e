"""When a frozen baseline is timed again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from apps.campaigns.canary.drift import REFERENCE_READINGS

AGAIN_AFTER_S = 60.0
"""The least time between two orders: an evaluator that fails is not asked over and over."""
DRIFT_EVERY_S = 300.0


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of a base. ``evaluations`` were made on its device since the last reading; ``suspect``: the last
    reading lay beyond and no drift is open; ``restarted``: the worker began after the last order; ``idle``: nobody
    uses the device."""

    every: int
    readings: int
    evaluations: int
    suspect: bool
    drifting: bool
    restarted: bool
    idle: bool
    since_order_s: float | None


@dataclass(frozen=True, slots=True)
class Order:
    """Time it now. ``urgent`` ones take their turn among rounds, the others wait until nobody needs the device."""

    reason: str
    urgent: bool


def due(now: Situation) -> Order | None:
    """The order that the situation asks for, if any; ``every`` 0 turns the canary off."""
    if now.every <= 0 or (now.since_order_s is not None and now.since_order_s < AGAIN_AFTER_S):
        return None
    if now.suspect:
        return Order("the last reading lay beyond its margin", urgent=True)
    if now.drifting:
        enough = now.since_order_s is None or now.since_order_s >= DRIFT_EVERY_S
        return Order("the device drifts; it is looked at every five minutes", urgent=True) if enough else None
    if now.evaluations >= now.every:
        return Order(f"{now.evaluations} evaluations since the last reading", urgent=True)
    if not now.idle:
        return None
    if now.restarted:
        return Order("the worker started", urgent=False)
    if now.readings < REFERENCE_READINGS:
        return Order("the reference is not complete yet", urgent=False)
    return None
