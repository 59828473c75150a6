"""Caches of pod templates: results that attempts share, and the changes that make them stale.

Six ideas, in the order in which an attempt meets them:

1. **Template.** Pods that differ in name only have one template, and one :class:`~.template.TemplateCache`
   per profile. An attempt calls ``refresh`` and then reads verdicts and totals. :mod:`~.templates` decides
   which caches stay in memory; that affects only speed.
2. **Changes.** :class:`~.changes.ClusterChanges` compares the clocks of the cluster with those of the last
   refresh: nothing has changed, or the pods of some nodes, or some node objects, or everything.
3. **Local and global plugins.** A local plugin reads one node (``Reads.NODE``) or that and its pods
   (``Reads.ROW``): it is called again for changed nodes only. A global plugin (``Reads.CLUSTER``) is called
   again for all nodes. With ``Reads.POD``, nothing is kept from one pod to the next.
4. **Result version.** A plugin may name the version of its results. A global plugin is not called again while
   its version is the same; a local one is called again for all nodes if its version is another
   (:mod:`~.versions`).
5. **Shared results.** What depends only on a part of the template is computed once for all templates with
   that part: the result of a plugin by its ``signature`` (:mod:`~.node_columns`). It holds until a node or
   another object changes.
6. **Verdicts and totals.** Each node's first rejection (:mod:`~.filter_results`), and the weighted sum of its
   scores as far as it depends on the node alone (:mod:`~.scores`). The best nodes are kept with them:
   :mod:`~.best_rows`, or :mod:`~.compiled_totals` where the compiled kernel computes. If all points besides
   differ only by class of nodes, such as zone and own pods, the best is kept for each class
   (:mod:`~.best_by_class`).

What makes each result stale:

====================================  ==================================================================
Result                                Computed again when
====================================  ==================================================================
PreFilter (:mod:`~.pre_filter`)       local: a node object has changed; global: the version is another
codes of filters that read nodes      node objects have changed: for these
codes of filters that read pods too   the node or its pods have changed: for these
codes of global filters               the version is another; with ``by_row`` for changed nodes
verdicts, and points of local scores  the node or its pods have changed: for these
points of global scores               always, for each node or for each class of nodes
words (:mod:`~.refusals`)             verdicts are renewed
any of these                          another object, the number of nodes or the set of resources has
                                      changed, a local version is another, or a plugin raised
====================================  ==================================================================
"""
