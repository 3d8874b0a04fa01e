"""The database's own refusals: rules, installation, verification."""

from apps.reviews.triggers.install import install, lift, missing, tables_exist
from apps.reviews.triggers.rules import RULES, Rule

__all__ = ["RULES", "Rule", "install", "lift", "missing", "tables_exist"]
