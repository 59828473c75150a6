import { NameValueTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Alert, Button, Typography } from '@mui/material';
import React from 'react';
import { clusterSend } from './clusterSend';
import { lines } from './memoryLines';
import { askOperator, type PodMemory } from './operatorMemory';
import { type PodDocument, schedulingCondition } from './pendingPod';
import { useLease } from './settings';

type Answer = { memory: PodMemory } | { why: string } | undefined;

/** What only the operator knows of a pending pod; why it was not asked where it does not answer. */
export function MemorySection({ pod, cluster }: { pod: PodDocument; cluster: string }) {
  const [answer, setAnswer] = React.useState<Answer>(undefined);
  const [asked, setAsked] = React.useState(0);
  const lease = useLease();
  const namespace = pod.metadata.namespace ?? 'default';
  const schedulerName = pod.spec?.schedulerName ?? 'default-scheduler';
  // A further attempt changes what the operator remembers, and mostly the condition.
  const message = schedulingCondition(pod)?.message;
  React.useEffect(() => {
    let isCurrent = true;
    const one = { namespace, name: pod.metadata.name, schedulerName };
    askOperator(clusterSend(cluster), lease, one).then(
      memory => isCurrent && setAnswer({ memory }),
      (error: Error) => isCurrent && setAnswer({ why: error.message })
    );
    return () => {
      isCurrent = false;
    };
  }, [
    asked,
    cluster,
    lease.namespace,
    lease.name,
    namespace,
    pod.metadata.name,
    schedulerName,
    message,
  ]);
  return (
    <section aria-label="What the operator remembers" aria-live="polite">
      <Typography variant="h6" component="h3" sx={{ mt: 2 }}>
        What the operator remembers
      </Typography>
      {answer === undefined && <Typography>Asking the operator…</Typography>}
      {answer !== undefined && 'why' in answer && (
        <Alert severity="info">The operator was not asked: {answer.why}.</Alert>
      )}
      {answer !== undefined && 'memory' in answer && <NameValueTable rows={lines(answer.memory)} />}
      <Button size="small" onClick={() => setAsked(asked + 1)}>
        Ask again
      </Button>
    </section>
  );
}
