"""Campaign pages."""

from __future__ import annotations

from django.urls import path

from apps.campaigns.views import compare, control, detail, listing, log, new, requests, turns

urlpatterns = [
    path("campaigns/", listing.campaigns, name="campaigns"),
    path("campaigns/new/", new.new_campaign, name="campaign-new"),
    path("campaigns/new/preview/", new.preview, name="campaign-preview"),
    path("campaigns/compare/", compare.compare, name="campaign-compare"),
    path("campaigns/<int:pk>/", detail.campaign, name="campaign"),
    path("campaigns/<int:pk>/log.<str:form>", log.export, name="campaign-log"),
    path("campaigns/<int:pk>/do/<str:action>/", control.act_on, name="campaign-act"),
    path("campaigns/<int:pk>/rounds/<int:number>/", detail.round_page, name="round"),
    path("campaigns/<int:pk>/replay.zip", turns.replay, name="campaign-replay"),
    path("campaigns/<int:pk>/requests.zip", requests.requests_of_dry_run, name="campaign-requests"),
    path("campaigns/<int:pk>/turns.jsonl", turns.campaign_turns, name="campaign-turns"),
    path("campaigns/<int:pk>/rounds/<int:number>/turns.json", turns.round_turns, name="round-turns"),
    path("spot-checks/<int:pk>/", control.answer_spot_check, name="spot-check"),
]
