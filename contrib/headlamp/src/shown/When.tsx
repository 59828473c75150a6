import { DateLabel } from '@kinvolk/headlamp-plugin/lib/CommonComponents';

/** How long ago a time was; the time itself on a longer look. */
export function When({ time }: { time: string | undefined }) {
  return time ? <DateLabel date={time} format="mini" /> : <>never</>;
}
