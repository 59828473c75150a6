import { ResourceListView } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { MenuItem, TextField } from '@mui/material';
import React from 'react';
import { Eviction } from '../kinds/eviction';
import { passes, PHASE_NAMES } from './evictionFacts';
import { EVICTION_COLUMNS } from './EvictionTable';
import { useChosen } from './useChosen';

/** All records, narrowed down by policy and phase; both are in the address, so that a link can have them. */
export function EvictionList() {
  const { items, errors } = Eviction.useList();
  const [policy, setPolicy] = useChosen('policy');
  const [phase, setPhase] = useChosen('phase');
  const records = items as Eviction[] | null;
  const policies = React.useMemo(
    () =>
      [...new Set([policy, ...(records ?? []).map(each => each.spec.policy)])]
        .filter(Boolean)
        .sort(),
    [records, policy]
  );
  const shown = React.useMemo(
    () => records?.filter(each => passes(each, { policy, phase })) ?? null,
    [records, policy, phase]
  );
  return (
    <ResourceListView
      title="Evictions"
      id="plimsoll-evictions"
      data={shown}
      errors={errors}
      columns={EVICTION_COLUMNS}
      headerProps={{
        actions: [
          <Choice
            key="policy"
            label="Policy"
            value={policy}
            from={policies}
            onChange={setPolicy}
          />,
          <Choice key="phase" label="Phase" value={phase} from={PHASE_NAMES} onChange={setPhase} />,
        ],
      }}
    />
  );
}

/** A choice of one value, or of all. */
function Choice(props: {
  label: string;
  value: string;
  from: string[];
  onChange: (value: string) => void;
}) {
  const { label, value, from, onChange } = props;
  const id = `plimsoll-${label.toLowerCase()}`;
  return (
    <TextField
      select
      id={id}
      size="small"
      label={label}
      value={value}
      onChange={event => onChange(event.target.value)}
      sx={{ minWidth: '10rem' }}
      SelectProps={{ displayEmpty: true }}
      InputLabelProps={{ shrink: true }}
    >
      <MenuItem value="">All</MenuItem>
      {from.map(each => (
        <MenuItem key={each} value={each}>
          {each}
        </MenuItem>
      ))}
    </TextField>
  );
}
