import {
  NameValueTable,
  SectionBox,
  SimpleTable,
} from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Typography } from '@mui/material';
import { parseFitMessage, type ReasonCount } from './fitMessage';
import { MemorySection } from './MemorySection';
import { explainCommand, isPending, type PodDocument, schedulingCondition } from './pendingPod';
import { refusalOf } from './refusals';

/** In a pod's page: why the pod has no node. Nothing for a pod that has one. */
export function PendingSection(props: { pod: PodDocument; cluster: string }) {
  const { pod, cluster } = props;
  if (!isPending(pod)) {
    return null;
  }
  return (
    <SectionBox title="Why is this pod pending">
      <Said pod={pod} />
      <MemorySection pod={pod} cluster={cluster} />
      <Typography variant="body2" sx={{ my: 2, overflowWrap: 'anywhere' }}>
        Changes that were tested on a copy of the cluster, and would let the pod fit, are in the
        answer of <code>{explainCommand(pod)}</code>
      </Typography>
    </SectionBox>
  );
}

/** What the pod itself says: its condition in parts, gates, and the node that is held for it. */
function Said({ pod }: { pod: PodDocument }) {
  const condition = schedulingCondition(pod);
  const gates = (pod.spec?.schedulingGates ?? []).map(each => each.name).join(', ');
  const message = condition?.message ?? '';
  const parts = parseFitMessage(message);
  const counts = parts?.counts ?? [];
  const unseen = `No scheduler has written a PodScheduled condition. If it stays so, no scheduler serves the name "${
    pod.spec?.schedulerName ?? 'default-scheduler'
  }".`;
  return (
    <>
      <NameValueTable
        rows={[
          { name: 'Scheduler', value: pod.spec?.schedulerName ?? 'default-scheduler' },
          {
            name: 'Says',
            value: condition === undefined ? unseen : message || condition.reason || '',
            hide: counts.length > 0,
          },
          {
            name: 'Scheduling gates',
            value: `${gates}: the controller that put them there has to remove them`,
            hide: gates === '',
          },
          {
            name: 'Nominated node',
            value: pod.status?.nominatedNodeName || 'none: no room is held for it by preemption',
          },
          {
            name: 'Preemption',
            value: parts?.preemption ?? '',
            hide: counts.length === 0 || !parts?.preemption,
          },
        ]}
      />
      {counts.length > 0 && <Counts counts={counts} nodes={parts?.nodes ?? 0} />}
    </>
  );
}

/** Nodes by the reason that refuses them; a node counts at the first plugin that refuses it. */
function Counts({ counts, nodes }: { counts: ReasonCount[]; nodes: number }) {
  return (
    <SimpleTable
      data={counts}
      columns={[
        { label: 'Nodes', getter: (each: ReasonCount) => `${each.nodes} of ${nodes}` },
        {
          label: 'Plugin',
          getter: (each: ReasonCount) => refusalOf(each.reason)?.plugin ?? 'not known here',
        },
        { label: 'Refuses them for', getter: (each: ReasonCount) => each.reason },
        {
          label: 'What would help',
          getter: (each: ReasonCount) =>
            refusalOf(each.reason)?.helps ?? 'plimsoll explain says more about it',
        },
      ]}
    />
  );
}
