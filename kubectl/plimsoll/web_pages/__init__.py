"""Web pages for people: reports in one file, rendered from answers by templates.

A page needs no network and runs no code but its own: its content security policy allows one script and one
style sheet, by their digests. Everything from a cluster is text, never markup.
"""
