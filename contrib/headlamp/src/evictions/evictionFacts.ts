import type { EvictionRecord, EvictionStatus, Transition } from '../kinds/eviction';

/** What each phase says, and whether it is good. Source: the enumeration of the definition. */
const PHASES: Record<string, { level: 'success' | 'warning' | 'error' | ''; says: string }> = {
  Predicted: { level: '', says: 'a dry run would make this move' },
  Planned: { level: '', says: 'decided; waits for its turn or for approval' },
  Evicting: { level: '', says: 'the eviction is asked for' },
  Evicted: { level: '', says: 'the pod is gone; its replacement is awaited' },
  Surging: { level: '', says: 'a rollout brings the replacement up first' },
  Settled: { level: 'success', says: 'the replacement is ready on another node' },
  Returned: { level: 'warning', says: 'the replacement came back to the same node' },
  Blocked: { level: 'warning', says: 'a budget allowed no eviction' },
  Failed: { level: 'error', says: 'the move failed' },
  Cancelled: { level: 'warning', says: 'the move was given up' },
};

/** All phases, in the order of a move. */
export const PHASE_NAMES = Object.keys(PHASES);

/** The phase as a word; a record that the operator has not looked at has none. */
export function phaseOf(status: EvictionStatus | undefined): string {
  return status?.phase ?? 'No phase';
}

/** Whether a phase is good. */
export function phaseLevel(phase: string): 'success' | 'warning' | 'error' | '' {
  return PHASES[phase]?.level ?? '';
}

/** What a phase says, for people who do not know the words. */
export function phaseSays(phase: string): string {
  return PHASES[phase]?.says ?? 'the operator has not written a status yet';
}

/** A step of a record's time line. */
export interface Step extends Transition {
  /** Seconds since the step before; 0 for the first. */
  after: number;
}

/** The phases of a record as they were reached, oldest first. */
export function timeLine(status: EvictionStatus | undefined): Step[] {
  const sorted = [...(status?.transitions ?? [])].sort(
    (one, other) => Date.parse(one.time) - Date.parse(other.time)
  );
  return sorted.map((each, index) => {
    const before = sorted[index - 1];
    const after = before === undefined ? 0 : Date.parse(each.time) - Date.parse(before.time);
    return { ...each, after: Math.round(after / 1000) };
  });
}

/** A number of seconds as people say it. */
export function lasted(seconds: number): string {
  if (seconds < 120) {
    return `${seconds} s`;
  }
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** Where a record says the pod goes: the target, and whether that is only a forecast. */
export function targetOf(record: EvictionRecord): string {
  const { targetNode, forecast, purpose } = record.spec;
  if (!targetNode) {
    return purpose === 'Restart' ? 'any node' : '';
  }
  return forecast ? `${targetNode} (forecast)` : targetNode;
}

/** What the lists are narrowed down to; an empty string takes everything. */
export interface Filter {
  policy: string;
  phase: string;
}

/** Whether a record passes a filter. */
export function passes(record: EvictionRecord, filter: Filter): boolean {
  const { policy, phase } = filter;
  return (
    (policy === '' || record.spec.policy === policy) &&
    (phase === '' || phaseOf(record.status) === phase)
  );
}

/** A pod, as far as records name it. */
export interface MovedPod {
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    ownerReferences?: { uid?: string; controller?: boolean }[];
  };
}

/** How a record is about a pod. */
export type Relation =
  | 'this pod'
  | 'this pod replaced the one that moved'
  | 'another pod of its owner';

/** How a record is about a pod; undefined when it is not. Names are used again, uids are not. */
export function relationOf(record: EvictionRecord, pod: MovedPod): Relation | undefined {
  const { uid, ownerReferences } = pod.metadata;
  if (uid !== undefined && record.spec.pod.uid === uid) {
    return 'this pod';
  }
  if (uid !== undefined && record.status?.replacement?.uid === uid) {
    return 'this pod replaced the one that moved';
  }
  const owner = ownerReferences?.find(each => each.controller)?.uid;
  if (owner !== undefined && record.spec.owner?.uid === owner) {
    return 'another pod of its owner';
  }
  return undefined;
}
