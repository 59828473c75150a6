import { askOperator, DEFAULT_LEASE, type Send } from './operatorMemory';

/** An API server and a pod of it, from tests/e2e/test_headlamp.py; without them there is nobody to ask. */
interface Live {
  server: string;
  token: string;
  lease?: string;
  pod: { namespace: string; name: string; schedulerName: string };
}

const given = import.meta.env.VITE_PLIMSOLL_LIVE as string | undefined;

it.skipIf(!given)('asks an operator that runs, through an API server', async () => {
  const { server, token, lease, pod } = JSON.parse(given ?? '') as Live;
  const send: Send = async (path, options) => {
    const headers = { ...options?.headers, Authorization: `Bearer ${token}` };
    const answer = await fetch(server + path, { ...options, headers });
    if (!answer.ok) {
      throw new Error(await answer.text());
    }
    return answer.json();
  };

  const memory = await askOperator(send, { ...DEFAULT_LEASE, namespace: lease ?? 'plimsoll' }, pod);

  expect(memory.standing).toMatch(/^leading as /);
  expect(memory.queue?.rejectedBy).toContain('NodeResourcesFit');
});
