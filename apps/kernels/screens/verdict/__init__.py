"""The parts of the verdict page. Pure: documents in, rows and places on axes out."""
