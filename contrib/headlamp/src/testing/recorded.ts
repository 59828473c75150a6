import type { PodMemory } from '../explanation/operatorMemory';
import type { PodDocument } from '../explanation/pendingPod';
import type { EvictionRecord } from '../kinds/eviction';
import type { PolicySpec, PolicyStatus } from '../kinds/schedulingPolicy';
import eviction from '../recorded/eviction.json';
import pendingPod from '../recorded/pendingPod.json';
import podMemory from '../recorded/podMemory.json';
import policy from '../recorded/policy.json';

/** What a cluster and the operator said; the types are compared with what was recorded. */
export const recorded: {
  eviction: EvictionRecord;
  pendingPod: PodDocument;
  podMemory: PodMemory;
  policy: { spec: PolicySpec; status: PolicyStatus };
} = { eviction, pendingPod, podMemory: { ...podMemory, room: null }, policy };
