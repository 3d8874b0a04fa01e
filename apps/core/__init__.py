"""Base templates, shared tags, the home page, error pages, health and troubleshooting."""
