import { StatusLabel } from '@kinvolk/headlamp-plugin/lib/CommonComponents';

/** A word whose colour says again what the word says. */
export function Judged(props: {
  text: string;
  level: 'success' | 'warning' | 'error' | '';
  why?: string;
}) {
  if (props.text === '') {
    return null;
  }
  return (
    <StatusLabel status={props.level} title={props.why || undefined}>
      {props.text}
    </StatusLabel>
  );
}
