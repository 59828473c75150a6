import { cleanup, render, screen } from '@testing-library/react';
import { recorded } from '../testing/recorded';
import type { PodDocument } from './pendingPod';

vi.mock('@kinvolk/headlamp-plugin/lib/CommonComponents', () => import('../testing/standIns'));
vi.mock('./settings', () => ({ useLease: () => ({ namespace: 'plimsoll', name: 'plimsoll' }) }));
vi.mock('./clusterSend', () => ({
  clusterSend: () => () => Promise.reject(new Error('Forbidden - leases is forbidden')),
}));

const { PendingSection } = await import('./PendingSection');

/** The text of the section for a pod, after the operator was asked. */
async function shown(pod: PodDocument): Promise<string> {
  const { container } = render(<PendingSection pod={pod} cluster="one" />);
  await screen.findByText(/The operator was not asked/);
  return container.textContent ?? '';
}

afterEach(cleanup);

it('shows counts with their plugins, and says why the operator was not asked', async () => {
  const text = await shown(recorded.pendingPod);

  expect(text).toContain('2 of 6NodeResourcesFitInsufficient cpu');
  expect(text).toContain('1 of 6TaintTolerationnode(s) had untolerated taint(s)');
  expect(text).toContain('Forbidden - leases is forbidden');
  expect(text).toContain('bind the Role plimsoll-asking');
  expect(text).toContain('kubectl plimsoll explain pod shop/big');
});

it('says so when no scheduler has looked at the pod', async () => {
  const text = await shown({ metadata: { name: 'big' }, spec: { schedulerName: 'plimsol' } });

  expect(text).toContain('no scheduler serves the name "plimsol"');
});

it('shows markup as text', async () => {
  const script = '<script>document.title="owned"</script>';
  const status = {
    phase: 'Pending',
    nominatedNodeName: script,
    conditions: [
      { type: 'PodScheduled', status: 'False', message: `0/1 nodes are available: 1 ${script}.` },
    ],
  };

  const text = await shown({ metadata: { name: script, namespace: script }, status });

  expect(text.split(script).length).toBeGreaterThanOrEqual(4);
  expect(document.querySelector('script')).toBeNull();
  expect(document.title).not.toBe('owned');
});

it('is not there for a pod with a node, nor for one that has ended', () => {
  const placed = { ...recorded.pendingPod, spec: { nodeName: 'one' } };
  const ended = { ...recorded.pendingPod, status: { phase: 'Failed' } };

  expect(render(<PendingSection pod={placed} cluster="one" />).container.textContent).toBe('');
  expect(render(<PendingSection pod={ended} cluster="one" />).container.textContent).toBe('');
});
