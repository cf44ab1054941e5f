"""Pages for people: one template, one style, one chart layer. A page is its data and the scripts that draw it."""
