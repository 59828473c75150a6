"""Converts configurations of descheduler and kube-scheduler to SchedulingPolicies, and reports each field.

Pure: text in, policies and report out. Reading order: ``documents`` (text to documents), ``descheduler_file``
and ``strategy_map`` (descheduler's formats), ``rebalancing_conversion``, ``evictor_conversion`` and
``scheduling_conversion`` (their conversion), ``report``, ``conversion`` (the whole).
"""
