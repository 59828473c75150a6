import { Link } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Eviction, EVICTION_ROUTE } from '../kinds/eviction';
import { POLICY_ROUTE } from '../kinds/schedulingPolicy';
import { Judged } from '../shown/Judged';
import { phaseLevel, phaseOf, phaseSays, targetOf } from './evictionFacts';

/** The columns of records; where the window is narrow, Headlamp leaves out some from the right. */
export const EVICTION_COLUMNS = [
  {
    id: 'pod',
    label: 'Pod',
    getValue: (record: Eviction) => record.spec.pod.name,
    render: (record: Eviction) => (
      <Link
        routeName={EVICTION_ROUTE}
        params={{ namespace: record.getNamespace(), name: record.getName() }}
        activeCluster={record.cluster}
      >
        {record.spec.pod.name}
      </Link>
    ),
  },
  {
    id: 'phase',
    label: 'Phase',
    gridTemplate: 'max-content',
    getValue: (record: Eviction) => phaseOf(record.status),
    render: (record: Eviction) => <Phase phase={phaseOf(record.status)} />,
  },
  { id: 'from', label: 'From', getValue: (record: Eviction) => record.spec.fromNode },
  { id: 'to', label: 'To', getValue: (record: Eviction) => targetOf(record) },
  { id: 'strategy', label: 'Strategy', getValue: (record: Eviction) => record.spec.strategy },
  {
    id: 'policy',
    label: 'Policy',
    getValue: (record: Eviction) => record.spec.policy,
    render: (record: Eviction) => (
      <Link
        routeName={POLICY_ROUTE}
        params={{ name: record.spec.policy }}
        activeCluster={record.cluster}
      >
        {record.spec.policy}
      </Link>
    ),
  },
  {
    id: 'reason',
    label: 'Reason',
    getValue: (record: Eviction) => record.status.message || record.spec.reason,
  },
  'age' as const,
  {
    id: 'namespace',
    label: 'Namespace',
    getValue: (record: Eviction) => record.getNamespace() ?? '',
  },
  {
    id: 'landed',
    label: 'Landed',
    getValue: (record: Eviction) => record.status.replacement?.node ?? '',
  },
];

/** A phase as a word; a longer look says what it means. */
export function Phase({ phase }: { phase: string }) {
  return <Judged text={phase} level={phaseLevel(phase)} why={phaseSays(phase)} />;
}
