import { makeCustomResourceClass } from '@kinvolk/headlamp-plugin/lib/Crd';
import type { Condition } from './condition';
import { GROUP, VERSION } from './group';

/** A strategy of a policy; the arguments are those of its name. */
export interface Strategy {
  name: string;
  args?: Record<string, unknown>;
}

/** What a user writes, as far as the pages show it. Left-out fields have the defaults of the definition. */
export interface PolicySpec {
  suspend?: boolean;
  scheduling?: { schedulerName: string };
  rebalancing?: {
    mode?: string;
    planner?: string;
    schedule?: { cron?: string; intervalSeconds?: number; timeZone?: string };
    strategies?: Strategy[];
  };
}

/** Candidates that were refused for one reason. */
export interface Refused {
  reason: string;
  count: number;
  message?: string;
  examples?: string[];
}

/** The rebalancing run that started last. */
export interface LastRun {
  startTime?: string;
  completionTime?: string;
  mode?: string;
  result?: string;
  message?: string;
  failures?: { name: string; message?: string }[];
}

/** What the operator writes. */
export interface PolicyStatus {
  observedGeneration?: number;
  conditions?: Condition[];
  lastRun?: LastRun;
  nextRunTime?: string;
  counts?: {
    considered?: number;
    planned?: number;
    evicted?: number;
    verified?: number;
    refused?: Refused[];
  };
  totals?: {
    moved?: number;
    returned?: number;
    failed?: number;
    blocked?: number;
    open?: number;
    predicted?: number;
  };
}

/** The name and title of the page of one policy. */
export const POLICY_ROUTE = 'Plimsoll Policy';

/** The name and title of the page of all policies. */
export const POLICIES_ROUTE = 'Plimsoll Policies';

const Resource = makeCustomResourceClass({
  apiInfo: [{ group: GROUP, version: VERSION }],
  isNamespaced: false,
  kind: 'SchedulingPolicy',
  singularName: 'schedulingpolicy',
  pluralName: 'schedulingpolicies',
});

/** A SchedulingPolicy of the cluster. */
export class SchedulingPolicy extends Resource {
  static override get detailsRoute(): string {
    return POLICY_ROUTE;
  }

  static override get listRoute(): string {
    return POLICIES_ROUTE;
  }

  get spec(): PolicySpec {
    return this.jsonData.spec ?? {};
  }

  get status(): PolicyStatus {
    return this.jsonData.status ?? {};
  }
}
