"""Documents and vocabulary shared by every part of the harness and, through the bridge, the web application."""
