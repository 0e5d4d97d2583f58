"""The values everything is made of: frozen, with one JSON shape each, and no behaviour above their own."""
