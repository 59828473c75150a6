import { conditionOf } from '../kinds/condition';
import type { PolicySpec, PolicyStatus } from '../kinds/schedulingPolicy';

/** A word for a table, whether it is good, and why. */
export interface Verdict {
  text: string;
  level: 'success' | 'warning' | 'error' | '';
  why: string;
}

/** Whether the policy is at work; the words say it without the colour. */
export function readiness(spec: PolicySpec, status: PolicyStatus): Verdict {
  const ready = conditionOf(status, 'Ready');
  const why = ready?.message ?? '';
  if (spec.suspend) {
    return { text: 'Suspended', level: 'warning', why: why || 'spec.suspend is true' };
  }
  if (ready === undefined) {
    const nobody = 'The operator has not written a status yet: is it running?';
    return { text: 'No status', level: 'warning', why: nobody };
  }
  if (ready.status === 'True') {
    return { text: 'Ready', level: 'success', why };
  }
  return { text: 'Not ready', level: 'error', why: `${ready.reason ?? ready.status}: ${why}` };
}

/** Letters of a complaint that a table shows; the policy's page has all of them. */
const SHOWN = 100;

/** The beginning of a text for a table. */
export function shortened(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** Reason and message of what keeps the policy from its work; empty when nothing does. */
export function complaint(spec: PolicySpec, status: PolicyStatus): string {
  const degraded = conditionOf(status, 'Degraded');
  if (degraded?.status === 'True') {
    return `${degraded.reason}: ${degraded.message ?? ''}`;
  }
  const ready = readiness(spec, status);
  return ready.level === 'success' ? '' : ready.why;
}

/** What all runs came to, in words; empty without rebalancing. */
export function movesOf(spec: PolicySpec, status: PolicyStatus): string {
  if (spec.rebalancing === undefined) {
    return '';
  }
  const { moved = 0, failed = 0, returned = 0, open = 0, predicted = 0 } = status.totals ?? {};
  const parts = [`${moved} moved`];
  const others = { failed, returned, open, predicted };
  Object.entries(others).forEach(([what, count]) => count > 0 && parts.push(`${count} ${what}`));
  return parts.join(', ');
}

/** The mode of rebalancing; a policy without it moves nothing. */
export function modeOf(spec: PolicySpec): string {
  return spec.rebalancing === undefined ? 'Schedules only' : spec.rebalancing.mode ?? 'DryRun';
}

/** The planner; empty without rebalancing. */
export function plannerOf(spec: PolicySpec): string {
  return spec.rebalancing === undefined ? '' : spec.rebalancing.planner ?? 'Proven';
}

/** When rebalancing runs, in words; empty without it. */
export function scheduleOf(spec: PolicySpec): string {
  if (spec.rebalancing === undefined) {
    return '';
  }
  const { cron, intervalSeconds, timeZone } = spec.rebalancing.schedule ?? {};
  return cron ? `${cron} (${timeZone ?? 'UTC'})` : `every ${intervalSeconds ?? 300} seconds`;
}

/** The strategies' names, in their order. */
export function strategyNames(spec: PolicySpec): string {
  return (spec.rebalancing?.strategies ?? []).map(each => each.name).join(', ');
}

/** Arguments in one line of JSON; empty for the defaults. */
export function argumentsOf(args: Record<string, unknown> | undefined): string {
  return args === undefined || Object.keys(args).length === 0 ? '' : JSON.stringify(args);
}
