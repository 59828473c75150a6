import { makeCustomResourceClass } from '@kinvolk/headlamp-plugin/lib/Crd';
import { GROUP, VERSION } from './group';

/** A pod that a record names. */
export interface PodReference {
  namespace: string;
  name: string;
  uid: string;
}

/** What was decided and why; it never changes. */
export interface EvictionSpec {
  pod: PodReference;
  owner?: { apiVersion?: string; kind: string; name: string; uid?: string };
  policy: string;
  strategy: string;
  mode: string;
  planner?: string;
  reason: string;
  fromNode: string;
  targetNode?: string;
  forecast?: boolean;
  gain?: number;
  gainMaximum?: number;
  purpose?: string;
  surge?: { deployment: string };
  bundle?: {
    name?: string;
    position?: number;
    moves?: number;
    beneficiary?: PodReference;
    node?: string;
  };
}

/** When a phase was reached. */
export interface Transition {
  phase: string;
  time: string;
}

/** How far the move has come. */
export interface EvictionStatus {
  phase?: string;
  reason?: string;
  message?: string;
  blockedBy?: string;
  replacement?: { name: string; uid: string; node?: string };
  transitions?: Transition[];
}

/** A record without what Headlamp adds to it. */
export interface EvictionRecord {
  metadata: { name: string; namespace?: string; creationTimestamp?: string };
  spec: EvictionSpec;
  status?: EvictionStatus;
}

/** The name and title of the page of one record. */
export const EVICTION_ROUTE = 'Plimsoll Eviction';

/** The name and title of the page of all records. */
export const EVICTIONS_ROUTE = 'Plimsoll Evictions';

const Resource = makeCustomResourceClass({
  apiInfo: [{ group: GROUP, version: VERSION }],
  isNamespaced: true,
  kind: 'Eviction',
  singularName: 'eviction',
  pluralName: 'evictions',
});

/** The record of one move of a pod. */
export class Eviction extends Resource {
  static override get detailsRoute(): string {
    return EVICTION_ROUTE;
  }

  static override get listRoute(): string {
    return EVICTIONS_ROUTE;
  }

  get spec(): EvictionSpec {
    return this.jsonData.spec;
  }

  get status(): EvictionStatus {
    return this.jsonData.status ?? {};
  }
}
