"""Review pages and what people do there."""

from __future__ import annotations

from django.urls import path

from apps.reviews.views import actions, decide, pages

urlpatterns = [
    path("reviews/", pages.inbox, name="reviews"),
    path("reviews/<int:pk>/", pages.review_page, name="review"),
    path("reviews/<int:pk>/decide/", decide.decide, name="review-decide"),
    path("reviews/<int:pk>/comment/", actions.comment, name="review-comment"),
    path("reviews/<int:pk>/raise/", actions.raise_tier, name="review-raise"),
    path("reviews/<int:pk>/withdraw/", actions.withdraw, name="review-withdraw"),
    path("reviews/<int:pk>/seen/", actions.seen, name="review-seen"),
    path("reviews/threads/<int:pk>/reply/", actions.reply, name="thread-reply"),
    path("reviews/threads/<int:pk>/resolve/", actions.resolve, name="thread-resolve"),
    path("reviews/vetoes/<int:pk>/lift/", actions.lift, name="veto-lift"),
]
