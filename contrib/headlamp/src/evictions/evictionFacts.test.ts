import { recorded } from '../testing/recorded';
import {
  lasted,
  passes,
  phaseLevel,
  phaseOf,
  phaseSays,
  relationOf,
  targetOf,
  timeLine,
} from './evictionFacts';

const record = recorded.eviction;

it('tells the story of a record, oldest phase first, with what each step took', () => {
  const transitions = [
    { phase: 'Settled', time: '2026-01-01T00:03:00Z' },
    { phase: 'Planned', time: '2026-01-01T00:00:00Z' },
    { phase: 'Evicting', time: '2026-01-01T00:00:05Z' },
  ];

  const story = timeLine({ transitions }).map(each => [each.phase, lasted(each.after)]);

  expect(story).toEqual([
    ['Planned', '0 s'],
    ['Evicting', '5 s'],
    ['Settled', '3 min'],
  ]);
  expect(timeLine(record.status).map(each => each.phase)).toEqual([
    'Planned',
    'Evicting',
    'Evicted',
    'Settled',
  ]);
  expect(timeLine(undefined)).toEqual([]);
});

it('says phases in words', () => {
  expect(phaseOf(record.status)).toBe('Settled');
  expect(phaseSays('Settled')).toBe('the replacement is ready on another node');
  expect([phaseLevel('Settled'), phaseLevel('Failed'), phaseLevel('constructor')]).toEqual([
    'success',
    'error',
    '',
  ]);
  expect(phaseOf(undefined)).toBe('No phase');
});

it('narrows records down by policy and phase', () => {
  expect(passes(record, { policy: '', phase: '' })).toBe(true);
  expect(passes(record, { policy: 'shop-policy', phase: 'Settled' })).toBe(true);
  expect(passes(record, { policy: 'shop-policy', phase: 'Failed' })).toBe(false);
  expect(passes(record, { policy: 'another', phase: '' })).toBe(false);
});

it('marks a target that nothing vouches for', () => {
  const { spec } = record;

  expect(targetOf(record)).toBe('shop-new');
  expect(targetOf({ ...record, spec: { ...spec, forecast: true } })).toBe('shop-new (forecast)');
  const restart = { ...spec, targetNode: undefined, purpose: 'Restart' };
  expect(targetOf({ ...record, spec: restart })).toBe('any node');
});

describe('the records of a pod', () => {
  const { spec, status } = record;
  const owner = { uid: spec.owner?.uid, controller: true };
  const pod = (name: string, uid: string, ownerReferences = [owner]) => ({
    metadata: { name, uid, ownerReferences },
  });

  it('are those of its uid, of what it replaced, and of its owner', () => {
    expect(relationOf(record, pod('web', spec.pod.uid))).toBe('this pod');
    expect(relationOf(record, pod('web', status?.replacement?.uid ?? ''))).toBe(
      'this pod replaced the one that moved'
    );
    expect(relationOf(record, pod('web', 'other'))).toBe('another pod of its owner');
  });

  it('are not those of another pod with the same name', () => {
    expect(relationOf(record, pod(spec.pod.name, 'other', []))).toBeUndefined();
  });
});
