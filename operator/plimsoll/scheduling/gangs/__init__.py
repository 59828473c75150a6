"""Places the pods of a PodGroup together.

Three gates, in this order: :mod:`~plimsoll.scheduling.gangs.gates` waits until enough members exist,
:mod:`plimsoll.engine.gangs.placement` finds nodes for enough of them, and
:mod:`~plimsoll.scheduling.gangs.release` lets those that wait at Permit start together.
"""
