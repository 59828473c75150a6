import { type Condition, conditionOf } from '../kinds/condition';

/** A pod as the API server has it, as far as its explanation needs it. */
export interface PodDocument {
  metadata: { name: string; namespace?: string };
  spec?: {
    nodeName?: string;
    schedulerName?: string;
    schedulingGates?: { name: string }[];
  };
  status?: {
    phase?: string;
    nominatedNodeName?: string;
    conditions?: Condition[];
  };
}

/** Whether a pod waits for a node. */
export function isPending(pod: PodDocument): boolean {
  const phase = pod.status?.phase ?? 'Pending';
  return !pod.spec?.nodeName && phase === 'Pending';
}

/** What the scheduler wrote about the pod; undefined before its first attempt. */
export function schedulingCondition(pod: PodDocument): Condition | undefined {
  const found = conditionOf(pod.status, 'PodScheduled');
  return found?.status === 'False' ? found : undefined;
}

/** The command whose answer has the remedies that were tested on a copy of the cluster. */
export function explainCommand(pod: PodDocument): string {
  return `kubectl plimsoll explain pod ${pod.metadata.namespace ?? 'default'}/${pod.metadata.name}`;
}
