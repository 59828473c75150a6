import type { PodMemory } from './operatorMemory';

/** A line of what the operator remembers. */
export interface Line {
  name: string;
  value: string;
}

/** The operator's memory of a pod, a line for each thing that it knows. */
export function lines(memory: PodMemory): Line[] {
  const { queue, assumed, room } = memory;
  const found: Line[] = [{ name: 'Process', value: memory.standing }];
  if (queue === null) {
    found.push({
      name: 'Queue',
      value: 'the pod is in no queue: no policy serves its scheduler, or it has just left it',
    });
  } else {
    const place = queue.ahead > 0 ? `, ${queue.ahead} pods before it` : '';
    found.push({ name: 'Queue', value: `${queue.queue}${place}, since ${queue.waitedSeconds} s` });
    found.push({ name: 'Attempts', value: String(queue.attempts) });
    found.push({
      name: 'Next attempt',
      value:
        queue.backoffSeconds > 0
          ? `not before ${queue.backoffSeconds} s have passed`
          : 'may be made when something wakes it',
    });
    found.push({ name: 'Rejected by', value: queue.rejectedBy.join(', ') || 'no plugin' });
    if (queue.gatedBy) {
      found.push({ name: 'Held by', value: queue.gatedBy });
    }
    if (queue.event) {
      found.push({ name: 'Last event', value: queue.event });
    }
  }
  if (assumed) {
    found.push({ name: 'Assumed on', value: `${assumed}: its binding is being confirmed` });
  }
  if (room !== null) {
    const left = room.secondsLeft === null ? '' : `, for ${room.secondsLeft} s more`;
    found.push({
      name: 'Room is held on',
      value: `${room.node} (${room.reason} of ${room.owner}${left})`,
    });
  }
  return found;
}
