import { DetailsGrid, Link } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { useParams } from 'react-router-dom';
import { Eviction } from '../kinds/eviction';
import { POLICY_ROUTE } from '../kinds/schedulingPolicy';
import { phaseOf, phaseSays, targetOf } from './evictionFacts';
import { Phase } from './EvictionTable';
import { TimeLineSection } from './TimeLineSection';

/** One record: what was decided and why, what came of it, and when. */
export function EvictionDetails() {
  const { namespace, name } = useParams<{ namespace: string; name: string }>();
  return (
    <DetailsGrid
      resourceType={Eviction}
      namespace={namespace}
      name={name}
      withEvents
      extraInfo={(record: Eviction | null) => record && rows(record)}
      extraSections={(record: Eviction | null) =>
        record
          ? [{ id: 'plimsoll.time-line', section: <TimeLineSection status={record.status} /> }]
          : []
      }
    />
  );
}

function rows(record: Eviction) {
  const { spec, status, cluster } = record;
  const { bundle } = spec;
  const node = (name: string) => (
    <Link routeName="node" params={{ name }} activeCluster={cluster}>
      {name}
    </Link>
  );
  const pod = (name: string) => (
    <Link routeName="pod" params={{ namespace: spec.pod.namespace, name }} activeCluster={cluster}>
      {name}
    </Link>
  );
  const phase = phaseOf(status);
  return [
    { name: 'Phase', value: <Phase phase={phase} /> },
    { name: 'That is', value: phaseSays(phase) },
    { name: 'Message', value: status.message ?? '', hide: !status.message },
    { name: 'Blocked by', value: status.blockedBy ?? '', hide: !status.blockedBy },
    { name: 'Pod', value: pod(spec.pod.name) },
    {
      name: 'Owner',
      value: spec.owner ? `${spec.owner.kind} ${spec.owner.name}` : '',
      hide: !spec.owner,
    },
    { name: 'Why', value: spec.reason },
    { name: 'From', value: node(spec.fromNode) },
    {
      name: 'To',
      value: spec.targetNode && !spec.forecast ? node(spec.targetNode) : targetOf(record),
    },
    {
      name: 'Replacement',
      value: status.replacement ? pod(status.replacement.name) : '',
      hide: !status.replacement,
    },
    {
      name: 'Landed',
      value: status.replacement?.node ? node(status.replacement.node) : '',
      hide: !status.replacement?.node,
    },
    {
      name: 'Policy',
      value: (
        <Link routeName={POLICY_ROUTE} params={{ name: spec.policy }} activeCluster={cluster}>
          {spec.policy}
        </Link>
      ),
    },
    { name: 'Strategy', value: spec.strategy },
    { name: 'Mode', value: spec.mode },
    { name: 'Planner', value: spec.planner ?? '', hide: !spec.planner },
    {
      name: 'Gain',
      value: `${spec.gain} of at most ${spec.gainMaximum ?? '?'} points`,
      hide: spec.gain === undefined,
    },
    {
      name: 'Makes room for',
      value: bundle?.beneficiary
        ? `${bundle.beneficiary.namespace}/${bundle.beneficiary.name}`
        : '',
      hide: !bundle?.beneficiary,
    },
  ];
}
