import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { EvictionStatus } from '../kinds/eviction';
import { lasted, phaseSays, type Step, timeLine } from './evictionFacts';
import { Phase } from './EvictionTable';

/** When a record reached each phase, oldest first. */
export function TimeLineSection({ status }: { status: EvictionStatus }) {
  return (
    <SectionBox title="Time line">
      <SimpleTable
        data={timeLine(status)}
        emptyMessage="The record has reached no phase yet."
        columns={[
          { label: 'Time', getter: (step: Step) => <time dateTime={step.time}>{step.time}</time> },
          { label: 'After', getter: (step: Step) => lasted(step.after) },
          { label: 'Phase', getter: (step: Step) => <Phase phase={step.phase} /> },
          { label: 'That is', getter: (step: Step) => phaseSays(step.phase) },
        ]}
      />
    </SectionBox>
  );
}
