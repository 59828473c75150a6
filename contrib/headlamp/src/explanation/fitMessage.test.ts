import { recorded } from '../testing/recorded';
import { parseFitMessage } from './fitMessage';
import { schedulingCondition } from './pendingPod';
import { refusalOf } from './refusals';

const message = schedulingCondition(recorded.pendingPod)?.message ?? '';

it('counts the nodes of a recorded message, the most nodes first', () => {
  const parts = parseFitMessage(message);

  expect(parts?.counts).toEqual([
    { nodes: 3, reason: "node(s) didn't match Pod's node affinity/selector" },
    { nodes: 2, reason: 'Insufficient cpu' },
    { nodes: 1, reason: 'node(s) had untolerated taint(s)' },
  ]);
  expect(parts?.nodes).toBe(6);
  expect(parts?.preemption).toContain('6 Preemption is not helpful for scheduling.');
});

it('names the plugin of every recorded reason, and what helps', () => {
  const plugins = parseFitMessage(message)?.counts.map(each => refusalOf(each.reason)?.plugin);

  expect(plugins).toEqual(['NodeAffinity', 'NodeResourcesFit', 'TaintToleration']);
  expect(refusalOf('Insufficient nvidia.com/gpu')?.helps).toContain('free that resource');
  expect(refusalOf('a plugin of our own says no')).toBeUndefined();
});

it('keeps taints with dots and commas inside reasons', () => {
  const parts = parseFitMessage(
    '0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/x: a, b}, 2 Too many pods.'
  );

  expect(parts?.counts.map(each => each.reason)).toEqual([
    'Too many pods',
    'node(s) had untolerated taint {node.kubernetes.io/x: a, b}',
  ]);
  expect(parts?.preemption).toBe('');
});

it('shows a sentence of one plugin as a whole', () => {
  const parts = parseFitMessage(
    '0/5 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: no.'
  );

  expect(parts?.counts).toEqual([]);
  expect(parts?.whole).toBe('pod has unbound immediate PersistentVolumeClaims');
});

it('leaves other messages alone', () => {
  expect(parseFitMessage('the operator may not bind pods')).toBeUndefined();
  expect(parseFitMessage('')).toBeUndefined();
  expect(parseFitMessage('0/0 nodes are available:')?.counts).toEqual([]);
});
