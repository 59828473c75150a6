/** Group and version of Plimsoll's kinds. */
export const GROUP = 'plimsoll.dev';
export const VERSION = 'v1alpha1';
