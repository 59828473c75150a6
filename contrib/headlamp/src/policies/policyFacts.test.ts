import { recorded } from '../testing/recorded';
import {
  argumentsOf,
  complaint,
  modeOf,
  movesOf,
  plannerOf,
  readiness,
  scheduleOf,
  shortened,
  strategyNames,
} from './policyFacts';

const { spec, status } = recorded.policy;

describe('a policy that is at work', () => {
  it('is ready, and complains of nothing', () => {
    expect(readiness(spec, status).text).toBe('Ready');
    expect(complaint(spec, status)).toBe('');
  });

  it('says what it does, and what it has done', () => {
    expect([modeOf(spec), plannerOf(spec), scheduleOf(spec), strategyNames(spec)]).toEqual([
      'Enforce',
      'Proven',
      'every 1 seconds',
      'RemoveDuplicates',
    ]);
    expect(movesOf(spec, status)).toBe('1 moved');
  });
});

describe('a policy that does not work', () => {
  it('says reason and message, and not by colour alone', () => {
    const message = 'there is no strategy "RemoveDuplicats"';
    const conditions = [
      { type: 'Ready', status: 'False', reason: 'InvalidConfiguration', message },
      { type: 'Degraded', status: 'True', reason: 'InvalidConfiguration', message },
    ];

    expect(readiness(spec, { conditions }).text).toBe('Not ready');
    expect(complaint(spec, { conditions })).toBe(`InvalidConfiguration: ${message}`);
  });

  it('is distinguished from one that nobody has looked at, and from a suspended one', () => {
    expect(readiness(spec, {}).text).toBe('No status');
    expect(complaint(spec, {})).toContain('is it running?');
    expect(readiness({ ...spec, suspend: true }, status).text).toBe('Suspended');
  });
});

it('shows defaults that are left out, and nothing for a policy that only schedules', () => {
  expect([modeOf({ rebalancing: {} }), plannerOf({ rebalancing: {} })]).toEqual([
    'DryRun',
    'Proven',
  ]);
  expect(scheduleOf({ rebalancing: {} })).toBe('every 300 seconds');
  expect([modeOf({}), plannerOf({}), movesOf({}, status)]).toEqual(['Schedules only', '', '']);
  expect(scheduleOf({ rebalancing: { schedule: { cron: '0 2 * * *' } } })).toBe('0 2 * * * (UTC)');
});

it('writes arguments as JSON, and nothing for the defaults', () => {
  expect(argumentsOf({ thresholds: { cpu: 20 } })).toBe('{"thresholds":{"cpu":20}}');
  expect([argumentsOf({}), argumentsOf(undefined)]).toEqual(['', '']);
});

it('shortens long complaints', () => {
  expect(shortened('n'.repeat(253))).toBe(`${'n'.repeat(100)}…`);
  expect(shortened('short')).toBe('short');
});
