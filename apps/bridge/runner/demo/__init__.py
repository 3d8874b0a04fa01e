"""The demo: a team, its people, and campaigns that are really run on this machine (DESIGN section 10)."""
