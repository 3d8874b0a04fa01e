"""Commands of the teams app."""
