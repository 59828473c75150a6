import { ResourceListView } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { SchedulingPolicy } from '../kinds/schedulingPolicy';
import { Judged } from '../shown/Judged';
import { When } from '../shown/When';
import {
  complaint,
  modeOf,
  movesOf,
  plannerOf,
  readiness,
  shortened,
  strategyNames,
} from './policyFacts';

/** All policies of the cluster. Where the window is narrow, Headlamp leaves out columns from the right. */
export function PolicyList() {
  return (
    <ResourceListView
      title="Scheduling Policies"
      id="plimsoll-policies"
      resourceClass={SchedulingPolicy}
      columns={[
        'name',
        {
          id: 'ready',
          label: 'Ready',
          getValue: (policy: SchedulingPolicy) => readiness(policy.spec, policy.status).text,
          render: (policy: SchedulingPolicy) => (
            <Judged {...readiness(policy.spec, policy.status)} />
          ),
          gridTemplate: 'max-content',
        },
        {
          id: 'mode',
          label: 'Mode',
          getValue: (policy: SchedulingPolicy) => modeOf(policy.spec),
          gridTemplate: 'max-content',
        },
        {
          id: 'planner',
          label: 'Planner',
          getValue: (policy: SchedulingPolicy) => plannerOf(policy.spec),
          gridTemplate: 'max-content',
        },
        {
          id: 'strategies',
          label: 'Strategies',
          getValue: (policy: SchedulingPolicy) => strategyNames(policy.spec),
          gridTemplate: 1.5,
        },
        {
          id: 'last-run',
          label: 'Last run',
          getValue: (policy: SchedulingPolicy) => policy.status.lastRun?.startTime ?? '',
          render: (policy: SchedulingPolicy) =>
            policy.spec.rebalancing ? <When time={policy.status.lastRun?.startTime} /> : <></>,
          gridTemplate: 'max-content',
        },
        {
          id: 'moves',
          label: 'Moves',
          getValue: (policy: SchedulingPolicy) => movesOf(policy.spec, policy.status),
        },
        {
          id: 'why',
          label: 'What is wrong',
          getValue: (policy: SchedulingPolicy) => shortened(complaint(policy.spec, policy.status)),
          gridTemplate: 2,
        },
        'age',
        {
          id: 'scheduler',
          label: 'Scheduler',
          getValue: (policy: SchedulingPolicy) => policy.spec.scheduling?.schedulerName ?? '',
        },
      ]}
    />
  );
}
