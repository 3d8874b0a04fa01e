"""One run of operators x agents x peers on the device at hand: a document, and a page that needs no network."""
