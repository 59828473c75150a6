import {
  NameValueTable,
  SectionBox,
  SimpleTable,
} from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { Condition } from '../kinds/condition';
import type { PolicySpec, PolicyStatus, Refused, Strategy } from '../kinds/schedulingPolicy';
import { When } from '../shown/When';
import { argumentsOf } from './policyFacts';

/** The conditions with reason and message in full. */
export function ConditionSection({ status }: { status: PolicyStatus }) {
  return (
    <SectionBox title="Conditions">
      <SimpleTable
        data={status.conditions ?? []}
        emptyMessage="The operator has not written a status yet: is it running?"
        columns={[
          { label: 'Condition', getter: (each: Condition) => each.type },
          { label: 'Status', getter: (each: Condition) => each.status },
          { label: 'Reason', getter: (each: Condition) => each.reason ?? '' },
          { label: 'Message', getter: (each: Condition) => each.message ?? '' },
          { label: 'Since', getter: (each: Condition) => <When time={each.lastTransitionTime} /> },
        ]}
      />
    </SectionBox>
  );
}

/** The run that started last, and what all runs came to. */
export function RunSection({ status }: { status: PolicyStatus }) {
  const { lastRun, counts = {}, totals = {}, nextRunTime } = status;
  const failures = (lastRun?.failures ?? []).map(each => `${each.name}: ${each.message ?? ''}`);
  return (
    <SectionBox title="Runs">
      <NameValueTable
        rows={[
          { name: 'Last run', value: <When time={lastRun?.startTime} /> },
          { name: 'Result', value: lastRun?.result ?? '', hide: !lastRun?.result },
          { name: 'Message', value: lastRun?.message ?? '', hide: !lastRun?.message },
          { name: 'Strategies that failed', value: failures.join('; '), hide: !failures.length },
          {
            name: 'In that run',
            value: `${counts.considered ?? 0} considered, ${counts.planned ?? 0} planned, ${
              counts.evicted ?? 0
            } evicted, ${counts.verified ?? 0} verified`,
          },
          {
            name: 'In all runs',
            value: `${totals.moved ?? 0} moved, ${totals.returned ?? 0} returned, ${
              totals.failed ?? 0
            } failed, ${totals.blocked ?? 0} blocked, ${totals.open ?? 0} open, ${
              totals.predicted ?? 0
            } predicted`,
          },
          { name: 'Next run', value: nextRunTime ?? '', hide: !nextRunTime },
        ]}
      />
    </SectionBox>
  );
}

/** Why candidates of the last run were not moved. */
export function RefusalSection({ status }: { status: PolicyStatus }) {
  return (
    <SectionBox title="Why pods stay">
      <SimpleTable
        data={status.counts?.refused ?? []}
        emptyMessage="The last run refused no candidate."
        columns={[
          { label: 'Pods', getter: (each: Refused) => each.count },
          { label: 'Reason', getter: (each: Refused) => each.reason },
          { label: 'Message', getter: (each: Refused) => each.message ?? '' },
          { label: 'Examples', getter: (each: Refused) => (each.examples ?? []).join(', ') },
        ]}
      />
    </SectionBox>
  );
}

/** The strategies in their order, with what they are asked. */
export function StrategySection({ spec }: { spec: PolicySpec }) {
  return (
    <SectionBox title="Strategies">
      <SimpleTable
        data={spec.rebalancing?.strategies ?? []}
        emptyMessage="The policy names no strategy, so nothing is moved."
        columns={[
          { label: 'Strategy', getter: (each: Strategy) => each.name },
          {
            label: 'Arguments',
            getter: (each: Strategy) => <code>{argumentsOf(each.args) || 'defaults'}</code>,
          },
        ]}
      />
    </SectionBox>
  );
}
