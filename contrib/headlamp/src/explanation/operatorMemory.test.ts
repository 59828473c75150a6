import { recorded } from '../testing/recorded';
import { lines } from './memoryLines';
import { askOperator, DEFAULT_LEASE, type Send } from './operatorMemory';

const POD = { namespace: 'shop', name: 'big' };
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plimsoll/leases';
const PODS = '/api/v1/namespaces/plimsoll/pods';
const TOKEN = '/api/v1/namespaces/plimsoll/serviceaccounts/plimsoll-reader/token';

/** An API server that has these objects; what was asked of it is kept. */
function server(objects: Record<string, unknown>) {
  const asked: { path: string; headers?: Record<string, string> }[] = [];
  const send: Send = async (path, options) => {
    asked.push({ path, headers: options?.headers });
    if (!(path in objects)) {
      throw new Error('Not Found');
    }
    return objects[path];
  };
  return { asked, send };
}

const held = (holderIdentity: string) => ({ spec: { holderIdentity } });
const leader = { spec: { containers: [{ ports: [{ name: 'metrics', containerPort: 9090 }] }] } };
const objects = {
  [`${LEASES}/plimsoll`]: held('plimsoll-7d9_f00'),
  [`${PODS}/plimsoll-7d9`]: leader,
  [TOKEN]: { status: { token: 'short-lived' } },
  [`${PODS}/plimsoll-7d9:9090/proxy/explain/pods/shop/big`]: recorded.podMemory,
};

it('asks the pod that the lease names, and shows it a token of its own alone', async () => {
  const { asked, send } = server(objects);

  expect(await askOperator(send, DEFAULT_LEASE, POD)).toEqual(recorded.podMemory);
  expect(asked.map(each => each.path)).toEqual(Object.keys(objects));
  expect(asked[3]?.headers).toEqual({ 'Plimsoll-Authorization': 'Bearer short-lived' });
});

it.each([
  [`${LEASES}/plimsoll`, 'lease plimsoll/plimsoll cannot be read (Not Found)'],
  [`${PODS}/plimsoll-7d9`, 'which holds the lease, cannot be read'],
  [TOKEN, 'apply deploy/components/explain and bind the Role plimsoll-asking'],
  [`${PODS}/plimsoll-7d9:9090/proxy/explain/pods/shop/big`, 'admit the API server'],
])('says what is missing without %s', async (path, sentence) => {
  const rest = Object.fromEntries(Object.entries(objects).filter(([key]) => key !== path));

  await expect(askOperator(server(rest).send, DEFAULT_LEASE, POD)).rejects.toThrow(sentence);
});

it('does not take a stranger for the operator', async () => {
  const answers = { ...objects, [`${PODS}/plimsoll-7d9:9090/proxy/explain/pods/shop/big`]: [] };

  await expect(askOperator(server(answers).send, DEFAULT_LEASE, POD)).rejects.toThrow(
    'is it the operator?'
  );
  const free = { [`${LEASES}/plimsoll`]: held('') };
  await expect(askOperator(server(free).send, DEFAULT_LEASE, POD)).rejects.toThrow(
    'no operator leads'
  );
});

it('sends no request for a holder that leads out of the path', async () => {
  const { asked, send } = server({ [`${LEASES}/plimsoll`]: held('../secrets/x_1') });

  await expect(askOperator(send, DEFAULT_LEASE, POD)).rejects.toThrow('is no name of an object');
  expect(asked).toHaveLength(1);
});

it('shows the memory in lines', () => {
  const shown = Object.fromEntries(lines(recorded.podMemory).map(each => [each.name, each.value]));

  expect(shown['Queue']).toContain('unschedulable, since ');
  expect(shown['Rejected by']).toBe('NodeAffinity, NodeResourcesFit, TaintToleration');
  const room = { node: 'n1', pod: 'a/b', reason: 'Nominated', owner: 'p', secondsLeft: 3 };
  const more = lines({ standing: 'leading', queue: null, assumed: 'n2', room });
  expect(more.map(each => each.name)).toEqual([
    'Process',
    'Queue',
    'Assumed on',
    'Room is held on',
  ]);
});
