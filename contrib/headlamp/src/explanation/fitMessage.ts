/** How many nodes refuse a pod for one reason. */
export interface ReasonCount {
  reason: string;
  nodes: number;
}

/** The message of the PodScheduled condition in parts. */
export interface FitMessage {
  /** Nodes of the cluster when the pod was tried. */
  nodes: number;
  /** Reasons with their nodes, the most nodes first. */
  counts: ReasonCount[];
  /** A sentence in place of the counts: one plugin refused the pod for all nodes. */
  whole: string;
  /** What preemption and other PostFilter plugins said; empty when they said nothing. */
  preemption: string;
}

/**
 * Parses kube-scheduler's message, as in `0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.
 * preemption: ...`. Source: `FitError.Error` of kube-scheduler.
 *
 * @returns undefined for a message of another form; show it as it is.
 */
export function parseFitMessage(message: string): FitMessage | undefined {
  const found = /^0\/(\d+) nodes are available:(?: ([\s\S]*))?$/.exec(message);
  if (found === null) {
    return undefined;
  }
  const rest = found[2] ?? '';
  // The first sentence has the counts; what follows is of the PostFilter plugins.
  const end = /\.(\s|$)/.exec(rest);
  const body = end === null ? rest : rest.slice(0, end.index);
  const preemption = end === null ? '' : rest.slice(end.index + 1).trim();
  const counts = countsOf(body);
  return {
    nodes: Number(found[1]),
    counts: counts ?? [],
    whole: counts === undefined ? body : '',
    preemption,
  };
}

/** The counts of `2 Insufficient cpu, 1 Too many pods`; undefined for a sentence without counts. */
function countsOf(body: string): ReasonCount[] | undefined {
  const counts: ReasonCount[] = [];
  // A reason may contain commas; a further count begins after a comma with a number.
  for (const part of body.split(/, (?=\d+ )/)) {
    const found = /^(\d+) ([\s\S]+)$/.exec(part);
    if (found === null) {
      return undefined;
    }
    counts.push({ nodes: Number(found[1]), reason: found[2] ?? '' });
  }
  return counts.sort((one, other) => other.nodes - one.nodes);
}
