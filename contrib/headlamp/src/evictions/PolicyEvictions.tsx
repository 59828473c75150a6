import { ResourceListView } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Eviction } from '../kinds/eviction';
import { EVICTION_COLUMNS } from './EvictionTable';

const COLUMNS = EVICTION_COLUMNS.filter(each => typeof each === 'string' || each.id !== 'policy');

/** The records of one policy, in its page. */
export function PolicyEvictions({ policy, cluster }: { policy: string; cluster: string }) {
  const { items, errors } = Eviction.useList({ cluster });
  const records = items as Eviction[] | null;
  return (
    <ResourceListView
      title="Evictions of this policy"
      id="plimsoll-policy-evictions"
      data={records?.filter(each => each.spec.policy === policy) ?? null}
      errors={errors}
      columns={COLUMNS}
      enableRowActions={false}
      enableRowSelection={false}
      headerProps={{ noNamespaceFilter: true, headerStyle: 'subsection' }}
    />
  );
}
