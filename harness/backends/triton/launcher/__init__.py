"""The launcher: a disposable process that executes compiled plans on the device and holds no candidate code."""
