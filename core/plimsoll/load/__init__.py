"""Sums up what nodes and pods are expected to use, in one book for both wings (docs/adr/0034-real-load.md).

Readings:
    :mod:`~plimsoll.load.readings` are what one source measured, and the settings by which they are judged:
    when they are stale, how they are smoothed.

The book:
    :mod:`~plimsoll.load.load_book` sums up the expected use of each node's pods and says how much is known
    (:mod:`~plimsoll.load.states`).
    :mod:`~plimsoll.load.expectations` computes what one pod is expected to use, from its readings, its
    workload's (:mod:`~plimsoll.load.usage_histograms`) or its predecessor's
    (:mod:`~plimsoll.load.predecessors`). :mod:`~plimsoll.load.shares` and
    :mod:`~plimsoll.load.used_columns` are its columns.

Answers:
    :mod:`~plimsoll.load.load_change` is what a move does to two nodes, :mod:`~plimsoll.load.load_fall` says
    of which nodes the load has fallen, and :mod:`~plimsoll.load.summary` describes the whole cluster.

``plimsoll.usage`` reads the sources, decides which readings are fresh (its ``load_keeper``) and updates the
book,
``plimsoll.planning.load`` decides what load means for moves, and the plugin ``plimsoll.plugins.node_load``
what it means for placement.
"""
