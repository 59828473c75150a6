"""Pages that people look at: reports in one file, drawn from answers by templates.

A page needs no network and runs no code but its own: its policy of content allows one script and one style
sheet, by their digests. Everything that a cluster says is text, never markup.
"""
