import { ApiProxy } from '@kinvolk/headlamp-plugin/lib';
import type { Send } from './operatorMemory';

/** Milliseconds for an answer; the API server's proxy waits longer for a pod that is not reached. */
const TIMEOUT_MS = 10_000;

/**
 * Sends requests to the API server of a cluster, with Headlamp's credentials for it.
 *
 * A 401 of the operator is about the token that was shown to it, so it ends nobody's session.
 */
export function clusterSend(cluster: string): Send {
  return async (path, options = {}) => {
    const response: Response = await ApiProxy.clusterRequest(path, {
      ...options,
      cluster,
      // As text: the operator refuses in plain text, and its sentence would be lost.
      isJSON: false,
      autoLogoutOnAuthError: false,
      timeout: TIMEOUT_MS,
    });
    return response.json();
  };
}
