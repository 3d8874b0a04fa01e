"""The canary: frozen baselines that are timed again and again, to notice when a device drifts."""
