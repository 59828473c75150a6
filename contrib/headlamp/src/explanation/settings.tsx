import { ConfigStore } from '@kinvolk/headlamp-plugin/lib';
import { NameValueTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { TextField } from '@mui/material';
import { DEFAULT_LEASE, type LeaseName } from './operatorMemory';

/** The name of the plugin, as package.json has it. */
export const PLUGIN = 'plimsoll';

const store = new ConfigStore<Partial<LeaseName>>(PLUGIN);
const useConfig = store.useConfig();

/** Where the operator's lease is, as the user set it. */
export function useLease(): LeaseName {
  const set = useConfig() ?? {};
  return {
    namespace: set.namespace || DEFAULT_LEASE.namespace,
    name: set.name || DEFAULT_LEASE.name,
  };
}

/** The settings of the plugin: the lease of the operator that is asked about pending pods. */
export function Settings(props: {
  data?: Partial<LeaseName>;
  onDataChange?: (data: Partial<LeaseName>) => void;
}) {
  const { data = {}, onDataChange } = props;
  const field = (key: keyof LeaseName, label: string) => (
    <TextField
      size="small"
      value={data[key] ?? ''}
      placeholder={DEFAULT_LEASE[key]}
      inputProps={{ 'aria-label': label }}
      onChange={event => onDataChange?.({ ...data, [key]: event.target.value.trim() })}
    />
  );
  return (
    <NameValueTable
      rows={[
        {
          name: 'Namespace of the operator',
          value: field('namespace', 'Namespace of the operator'),
        },
        { name: 'Name of its lease', value: field('name', 'Name of its lease') },
      ]}
    />
  );
}
