"""What the connectors of MirrorMaker 2 are made of, whichever workers run them."""
