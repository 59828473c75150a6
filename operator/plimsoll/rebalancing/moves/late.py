"""LATE names the events that may come late or twice in a stage: nothing changes then, and nothing is sent.

Columns and rows of the optional ways of moving pods are in their own tables.
"""

from collections.abc import Mapping
from types import MappingProxyType

from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.state import MoveStage
from plimsoll.rebalancing.moves.transition import MoveTable, nothing

_PR, _WA, _OP, _CH = MoveStage.PROPOSED, MoveStage.WAITING, MoveStage.OPENING, MoveStage.CHECKING
_CO, _EV, _RE, _LE = MoveStage.COMMITTING, MoveStage.EVICTING, MoveStage.REPLACING, MoveStage.LEAVING
_CL = MoveStage.CLOSED
_ALL = (_PR, _WA, _OP, _CH, _CO, _EV, _RE, _LE, _CL)

LATE: Mapping[type, tuple[MoveStage, ...]] = MappingProxyType(
    {
        events.MovePlanned: _ALL,
        events.RecordWritten: (_PR, _WA, _CH, _EV, _RE, _LE, _CL),
        events.RecordRefused: (_PR, _WA, _CH, _EV, _RE, _LE, _CL),
        events.RecordDeleted: (_OP, _CO, _EV, _RE, _LE, _CL),
        events.MoveApproved: (_WA, _CH, _CO, _EV, _RE, _LE, _CL),
        events.MoveRejected: (_CH, _CO, _EV, _RE, _LE, _CL),
        events.ApprovalWithdrawn: (_WA, _CH, _CO, _EV, _RE, _LE, _CL),
        events.MoveUnplanned: (_WA, _OP, _CH, _CO, _EV, _RE, _LE, _CL),
        events.PolicyChanged: (_CO, _EV, _RE, _LE, _CL),
        events.StopPressed: _ALL,
        events.BundleBroken: (_CO, _EV, _RE, _LE, _CL),
        events.Revalidated: (_CL,),
        events.RevalidationRefused: (_CL,),
        events.EvictionAnswered: (_RE, _LE, _CL),
        events.PodTerminating: (_PR, _WA, _OP, _CH, _CO, _RE, _LE, _CL),
        events.PodGone: (_WA, _OP, _CH, _CO, _RE, _CL),
        events.ReplacementSeen: (_PR, _WA, _OP, _CH, _CO, _LE, _CL),
        events.ReplacementRunning: (_PR, _WA, _OP, _CH, _CO, _LE, _CL),
        events.ReplacementReady: (_PR, _WA, _OP, _CH, _CO, _LE, _CL),
        events.ReplacementReturned: (_PR, _WA, _OP, _CH, _CO, _LE, _CL),
        events.ReplacementLost: (_PR, _WA, _OP, _CH, _CO, _LE, _CL),
        events.TimedOut: (_PR, _WA, _OP, _CH, _CO, _CL),
    }
)

TABLE = MoveTable(transitions={(stage, event): nothing for event, stages in LATE.items() for stage in stages})
