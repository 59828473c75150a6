/** What only the leading operator remembers of a pod. Source: PodMemory in docs/cli/json.md. */
export interface PodMemory {
  standing: string;
  queue: {
    queue: string;
    ahead: number;
    attempts: number;
    waitedSeconds: number;
    backoffSeconds: number;
    rejectedBy: string[];
    gatedBy: string;
    event: string;
  } | null;
  assumed: string;
  room: {
    node: string;
    pod: string;
    reason: string;
    owner: string;
    secondsLeft: number | null;
  } | null;
}

/** Where the operator's lease is. */
export interface LeaseName {
  namespace: string;
  name: string;
}

/** Where deploy/ puts it. */
export const DEFAULT_LEASE: LeaseName = { namespace: 'plimsoll', name: 'plimsoll' };

/** Sends a request to the API server, and gives the body of its answer; throws an error with `status`. */
export type Send = (
  path: string,
  options?: { method?: string; body?: string; headers?: Record<string, string> }
) => Promise<unknown>;

/** The operator did not answer; the message says why, and what to do. */
export class NotAsked extends Error {}

/** The audience of the token, and the header that shows it. Source: plimsoll.ports.audience. */
const AUDIENCE = 'plimsoll.dev';
const HEADER = 'Plimsoll-Authorization';

/** The ServiceAccount whose tokens the operator accepts there. */
const READER = 'plimsoll-reader';

/** Seconds that a token is valid: the least that the API server grants. */
const TOKEN_S = 600;

/** The metrics port of a pod that names none. */
const PORT = 8081;

/** Names that are a part of a path as they are. */
const PLAIN = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/**
 * Asks the operator that leads for its memory of a pod, as `plimsoll explain` does: the Lease names the pod,
 * a token of `plimsoll-reader` is requested, and the API server's proxy passes the question on.
 *
 * @throws NotAsked The operator did not answer.
 */
export async function askOperator(
  send: Send,
  lease: LeaseName,
  pod: { namespace: string; name: string }
): Promise<PodMemory> {
  const { namespace } = lease;
  const holder = await holderOf(send, lease);
  const at = holder.lastIndexOf('_');
  const operator = at > 0 ? holder.slice(0, at) : holder;
  const port = await portOf(send, namespace, operator);
  const token = await tokenOf(send, namespace);
  const explained = `explain/pods/${quoted(pod.namespace)}/${quoted(pod.name)}`;
  const path = `${pathOf(namespace, 'pods', operator)}:${port}/proxy/${explained}`;
  const answer = await explaining(
    () => send(path, { headers: { [HEADER]: `Bearer ${token}` } }),
    `pod ${namespace}/${operator} does not answer`,
    'turn its explain endpoint on (deploy/components/explain) and admit the API server to its metrics port'
  );
  if (!isMemory(answer)) {
    throw new NotAsked(`pod ${namespace}/${operator} answered something else; is it the operator?`);
  }
  return answer;
}

async function holderOf(send: Send, { namespace, name }: LeaseName): Promise<string> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${quoted(namespace)}/leases/${quoted(
    name
  )}`;
  const found = (await explaining(
    () => send(path),
    `lease ${namespace}/${name} cannot be read`,
    'name the lease of the operator in the settings of this plugin, or bind the Role plimsoll-asking'
  )) as { spec?: { holderIdentity?: unknown } };
  const holder = found.spec?.holderIdentity;
  if (typeof holder !== 'string' || holder === '') {
    throw new NotAsked(
      `lease ${namespace}/${name} has no holder: no operator leads; plimsoll check says more`
    );
  }
  return holder;
}

async function portOf(send: Send, namespace: string, pod: string): Promise<number> {
  const found = (await explaining(
    () => send(pathOf(namespace, 'pods', pod)),
    `pod ${namespace}/${pod}, which holds the lease, cannot be read`,
    'an operator outside the cluster is asked with plimsoll explain --operator URL'
  )) as {
    spec?: { containers?: { ports?: { name?: string; containerPort: number }[] }[] };
  };
  const ports = (found.spec?.containers ?? []).flatMap(each => each.ports ?? []);
  return ports.find(each => each.name === 'metrics')?.containerPort ?? PORT;
}

async function tokenOf(send: Send, namespace: string): Promise<string> {
  const body = JSON.stringify({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [AUDIENCE], expirationSeconds: TOKEN_S },
  });
  const found = (await explaining(
    () =>
      send(`${pathOf(namespace, 'serviceaccounts', READER)}/token`, {
        method: 'POST',
        body,
        headers: { 'Content-Type': 'application/json' },
      }),
    `no token of ServiceAccount ${namespace}/${READER} can be had`,
    'apply deploy/components/explain and bind the Role plimsoll-asking'
  )) as { status?: { token?: unknown } };
  const token = found.status?.token;
  if (typeof token !== 'string' || token === '') {
    throw new NotAsked(`the API server issued no token of ServiceAccount ${namespace}/${READER}`);
  }
  return token;
}

/** The answer; an error becomes a sentence with a remedy. */
async function explaining(
  ask: () => Promise<unknown>,
  what: string,
  remedy: string
): Promise<unknown> {
  try {
    return await ask();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new NotAsked(`${what} (${why.slice(0, 300)}): ${remedy}`);
  }
}

function isMemory(answer: unknown): answer is PodMemory {
  return typeof answer === 'object' && answer !== null && 'standing' in answer && 'queue' in answer;
}

function pathOf(namespace: string, plural: string, name: string): string {
  return `/api/v1/namespaces/${quoted(namespace)}/${plural}/${quoted(name)}`;
}

/** A name as a part of a path. Dots alone would be taken for folders. */
function quoted(name: string): string {
  if (!PLAIN.test(name)) {
    throw new NotAsked(`"${name.slice(0, 80)}" is no name of an object`);
  }
  return encodeURIComponent(name);
}
