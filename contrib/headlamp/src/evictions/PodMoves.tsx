import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Link } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Eviction, EVICTION_ROUTE } from '../kinds/eviction';
import { When } from '../shown/When';
import { type MovedPod, phaseOf, relationOf, targetOf } from './evictionFacts';
import { Phase } from './EvictionTable';
import { ListError } from './ListError';

/** In a pod's page: its moves, those that it came from, and those of its owner's pods. */
export function PodMoves({ pod, cluster }: { pod: MovedPod; cluster: string }) {
  const { items, error } = Eviction.useList({ cluster, namespace: pod.metadata.namespace });
  if (error?.status === 404) {
    return null; // a cluster without Plimsoll
  }
  const records = (items as Eviction[] | null)?.filter(each => relationOf(each, pod));
  return (
    <SectionBox title="Moves of this pod">
      {error ? (
        <ListError error={error} />
      ) : (
        <SimpleTable
          data={records ?? null}
          emptyMessage="No record is about this pod or another one of its owner."
          columns={[
            {
              label: 'Record',
              getter: (record: Eviction) => (
                <Link
                  routeName={EVICTION_ROUTE}
                  params={{ namespace: record.getNamespace(), name: record.getName() }}
                  activeCluster={cluster}
                >
                  {record.getName()}
                </Link>
              ),
            },
            { label: 'About', getter: (record: Eviction) => relationOf(record, pod) },
            {
              label: 'Phase',
              getter: (record: Eviction) => <Phase phase={phaseOf(record.status)} />,
            },
            { label: 'From', getter: (record: Eviction) => record.spec.fromNode },
            { label: 'To', getter: (record: Eviction) => targetOf(record) },
            { label: 'Strategy', getter: (record: Eviction) => record.spec.strategy },
            { label: 'Why', getter: (record: Eviction) => record.spec.reason },
            {
              label: 'Age',
              getter: (record: Eviction) => <When time={record.metadata.creationTimestamp} />,
            },
          ]}
        />
      )}
    </SectionBox>
  );
}
