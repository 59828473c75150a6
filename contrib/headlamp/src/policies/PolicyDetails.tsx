import { DetailsGrid } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { useParams } from 'react-router-dom';
import { PolicyEvictions } from '../evictions/PolicyEvictions';
import { SchedulingPolicy } from '../kinds/schedulingPolicy';
import { Judged } from '../shown/Judged';
import { modeOf, plannerOf, readiness, scheduleOf } from './policyFacts';
import { ConditionSection, RefusalSection, RunSection, StrategySection } from './policySections';

/** One policy: what it is asked, how it goes, and its moves. */
export function PolicyDetails() {
  const { name } = useParams<{ name: string }>();
  return (
    <DetailsGrid
      resourceType={SchedulingPolicy}
      name={name}
      withEvents
      extraInfo={(policy: SchedulingPolicy | null) =>
        policy && [
          { name: 'Ready', value: <Judged {...readiness(policy.spec, policy.status)} /> },
          {
            name: 'Scheduler',
            value: policy.spec.scheduling?.schedulerName ?? 'none: it schedules no pods',
          },
          { name: 'Mode', value: modeOf(policy.spec) },
          { name: 'Planner', value: plannerOf(policy.spec), hide: !policy.spec.rebalancing },
          { name: 'Schedule', value: scheduleOf(policy.spec), hide: !policy.spec.rebalancing },
        ]
      }
      extraSections={(policy: SchedulingPolicy | null) =>
        policy
          ? [
              { id: 'plimsoll.conditions', section: <ConditionSection status={policy.status} /> },
              ...(policy.spec.rebalancing
                ? [
                    { id: 'plimsoll.run', section: <RunSection status={policy.status} /> },
                    { id: 'plimsoll.refused', section: <RefusalSection status={policy.status} /> },
                    { id: 'plimsoll.strategies', section: <StrategySection spec={policy.spec} /> },
                    {
                      id: 'plimsoll.evictions',
                      section: (
                        <PolicyEvictions policy={policy.getName()} cluster={policy.cluster} />
                      ),
                    },
                  ]
                : []),
            ]
          : []
      }
    />
  );
}
