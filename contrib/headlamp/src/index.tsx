import {
  registerDetailsViewSectionsProcessor,
  registerPluginSettings,
  registerRoute,
  registerSidebarEntry,
} from '@kinvolk/headlamp-plugin/lib';
import { EvictionDetails } from './evictions/EvictionDetails';
import { EvictionList } from './evictions/EvictionList';
import { PLUGIN, Settings } from './explanation/settings';
import { EVICTION_ROUTE, EVICTIONS_ROUTE } from './kinds/eviction';
import { POLICIES_ROUTE, POLICY_ROUTE } from './kinds/schedulingPolicy';
import { PLIMSOLL_LINE } from './plimsollLine';
import { withPodSections } from './podSections';
import { PolicyDetails } from './policies/PolicyDetails';
import { PolicyList } from './policies/PolicyList';

const POLICIES = '/plimsoll/policies';
const EVICTIONS = '/plimsoll/evictions';

registerSidebarEntry({
  parent: null,
  name: 'plimsoll',
  label: 'Plimsoll',
  url: POLICIES,
  icon: PLIMSOLL_LINE,
});
registerSidebarEntry({
  parent: 'plimsoll',
  name: POLICIES_ROUTE,
  label: 'Scheduling Policies',
  url: POLICIES,
});
registerSidebarEntry({
  parent: 'plimsoll',
  name: EVICTIONS_ROUTE,
  label: 'Evictions',
  url: EVICTIONS,
});

registerRoute({
  path: POLICIES,
  sidebar: POLICIES_ROUTE,
  name: POLICIES_ROUTE,
  exact: true,
  component: PolicyList,
});
registerRoute({
  path: `${POLICIES}/:name`,
  sidebar: POLICIES_ROUTE,
  name: POLICY_ROUTE,
  exact: true,
  component: PolicyDetails,
});
registerRoute({
  path: EVICTIONS,
  sidebar: EVICTIONS_ROUTE,
  name: EVICTIONS_ROUTE,
  exact: true,
  component: EvictionList,
});
registerRoute({
  path: `${EVICTIONS}/:namespace/:name`,
  sidebar: EVICTIONS_ROUTE,
  name: EVICTION_ROUTE,
  exact: true,
  component: EvictionDetails,
});

registerDetailsViewSectionsProcessor(withPodSections);

registerPluginSettings(PLUGIN, Settings, true);
