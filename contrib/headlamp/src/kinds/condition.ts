/** A condition of an object's status, as in meta/v1. */
export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

/** The condition of a type; undefined without one. */
export function conditionOf(
  status: { conditions?: Condition[] } | undefined,
  type: string
): Condition | undefined {
  return status?.conditions?.find(each => each.type === type);
}
