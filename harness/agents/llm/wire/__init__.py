"""How a question gets to a model over the network and an answer back, whatever the endpoint does."""
