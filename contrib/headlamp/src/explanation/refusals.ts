import refusals from './refusals.json';

/** What is known of a reason. */
export interface Refusal {
  plugin: string;
  helps: string;
}

/**
 * The filter plugin that gives a reason, and what helps in general.
 *
 * @returns undefined for a reason of another plugin. Sentences of in-tree plugins are compared with the
 * operator's code by a test.
 */
export function refusalOf(reason: string): Refusal | undefined {
  return refusals.find(each => reason.startsWith(each.begins));
}
