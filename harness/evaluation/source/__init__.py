"""Reading a candidate without running it: intake, normal form, PARAMS, tier. Standard library only."""
