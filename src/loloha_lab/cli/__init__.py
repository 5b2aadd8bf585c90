"""Commands of the laboratory, which `loloha` finds by entry points."""
