"""The command line ``kubectl plimsoll``: its verbs, tables, connections and errors."""
