import {
  DefaultDetailsViewSection,
  registerDetailsViewSectionsProcessor,
} from '@kinvolk/headlamp-plugin/lib';
import { PodMoves } from './evictions/PodMoves';
import { PendingSection } from './explanation/PendingSection';

type Processor = Extract<
  Parameters<typeof registerDetailsViewSectionsProcessor>[0],
  (...args: never[]) => unknown
>;

const ID = 'plimsoll.pod';

/** The sections of a pod's page with ours after the first table, above what else the page has. */
export const withPodSections: Processor = (resource, sections) => {
  const idOf = (each: (typeof sections)[number]) =>
    typeof each === 'object' && each !== null && 'id' in each ? each.id : undefined;
  if (resource?.kind !== 'Pod' || sections.some(each => idOf(each) === ID)) {
    return sections;
  }
  const { jsonData, cluster } = resource;
  const ours = {
    id: ID,
    section: (
      <>
        <PendingSection pod={jsonData} cluster={cluster} />
        <PodMoves pod={jsonData} cluster={cluster} />
      </>
    ),
  };
  const at = sections.findIndex(each => idOf(each) === DefaultDetailsViewSection.METADATA) + 1;
  return [...sections.slice(0, at), ours, ...sections.slice(at)];
};
