"""What crosses a boundary: frozen records, by subject; the JSON documents are made of them."""
